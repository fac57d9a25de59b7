import fc from "fast-check";
import { expect, test } from "vitest";
import { Buffer as chosen, createPlainBuffer } from "./bytes.ts";

const Plain = createPlainBuffer();
const text = fc.string({ unit: "binary", maxLength: 60 }).map((each) => `${each}é\ud800😀\ufeff`);
const bytes = fc.uint8Array({ maxLength: 60 });

test("Node's Buffer is used where it exists", () => {
  expect(chosen).toBe(Buffer);
});

test.each(["utf8", "utf16le", "latin1"] as const)(
  "texts become the same bytes as with Node's Buffer in %s",
  (encoding) => {
    fc.assert(
      fc.property(text, (each) => {
        expect([...Plain.from(each, encoding)]).toEqual([...Buffer.from(each, encoding)]);
        expect(Plain.byteLength(each)).toBe(Buffer.byteLength(each));
      }),
    );
  },
);

test.each(["utf8", "utf16le", "latin1", "hex", "base64", "base64url"] as const)(
  "bytes become the same text as with Node's Buffer in %s",
  (encoding) => {
    fc.assert(
      fc.property(bytes, fc.nat(9), (each, start) => {
        expect(Plain.from(each).toString(encoding, start)).toBe(Buffer.from(each).toString(encoding, start));
      }),
    );
  },
);

test.each(["AAEC", "AA==", "AA", "A-_/+w", "A A\nE=C", "AAE=AAEC", "!", "é", ""])(
  "base64 is read like Node's: %j",
  (each) => {
    expect([...Plain.from(each, "base64")]).toEqual([...Buffer.from(each, "base64")]);
  },
);

test("numbers, searches, writes and joins are those of Node's Buffer", () => {
  const every = (Kind: typeof Buffer) => {
    const data = Kind.from("xx/Type /Page é /Type", "utf8");
    const room = Kind.alloc(9);
    const written = [room.write("ab\u0101", "utf16le"), room.write("xyz", 7, "latin1")];
    const numbers = [data.readUInt8(1), data.readUInt16BE(1), data.readUInt16LE(1), data.readUIntLE(1, 3)];
    const found = [
      data.indexOf("/Type"),
      data.indexOf("/Type", 3),
      data.indexOf("no"),
      data.indexOf(0x20),
      data.lastIndexOf(0x2f),
    ];
    const swapped = Kind.from([1, 2, 3, 4]).swap16();
    const joined = Kind.concat([Kind.of(255), Kind.from("é"), data.subarray(2, 5)]);
    return [written, [...room], numbers, data.readUInt32BE(2), data.readUInt32LE(2), found, [...swapped], [...joined]];
  };
  expect(every(Plain)).toEqual(every(Buffer));
  expect(Plain.from(Uint8Array.of(9, 8, 7).buffer, 1, 2).toString("hex")).toBe("0807");
});
