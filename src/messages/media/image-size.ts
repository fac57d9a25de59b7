/** Width and height of an image from the head of its base64, whatever its media type claims. Decodes a few bytes, never the image. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export function imageSize(base64: string): ImageSize | undefined {
  // Base64 from mail tools is broken into lines, which would shift every offset.
  const data = /\s/.test(base64.slice(0, 128))
    ? base64.slice(0, maxWrappedChars).replace(/\s+/g, "")
    : base64;
  const head = bytesAt(data, 0, 32);
  const size = pngSize(head) ?? gifSize(head) ?? webpSize(head) ?? jpegSize(data, head);
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined;
}

const maxWrappedChars = 262_144;

// Every 4 characters hold 3 bytes, so any byte range can be decoded on its own.
function bytesAt(data: string, offset: number, length: number): Buffer {
  const skip = offset % 3;
  const start = ((offset - skip) / 3) * 4;
  const end = start + Math.ceil((skip + length) / 3) * 4;
  return Buffer.from(data.slice(start, end), "base64").subarray(skip, skip + length);
}

function pngSize(head: Buffer): ImageSize | undefined {
  if (head.length < 24 || head.readUInt32BE(0) !== 0x89504e47) return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

function gifSize(head: Buffer): ImageSize | undefined {
  if (head.length < 10 || head.toString("latin1", 0, 4) !== "GIF8") return undefined;
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
}

function webpSize(head: Buffer): ImageSize | undefined {
  if (head.length < 30 || head.toString("latin1", 8, 12) !== "WEBP") return undefined;
  switch (head.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = head.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

// The frame header may come after kilobytes of EXIF and colour profiles: walk from segment to segment.
function jpegSize(data: string, head: Buffer): ImageSize | undefined {
  if (head.length < 4 || head.readUInt16BE(0) !== 0xffd8) return undefined;
  let offset = 2;
  for (let segments = 0; segments < 256; segments++) {
    const header = bytesAt(data, offset, 9);
    if (header.length < 9 || header[0] !== 0xff) return undefined;
    const marker = header.readUInt8(1);
    if (marker === 0xff) offset += 1;
    else if (isFrameHeader(marker)) return { width: header.readUInt16BE(7), height: header.readUInt16BE(5) };
    else offset += 2 + header.readUInt16BE(2);
  }
  return undefined;
}

// C4, C8 and CC lie in the range of the frame headers but are tables and reserved codes (ITU-T T.81, table B.1).
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
