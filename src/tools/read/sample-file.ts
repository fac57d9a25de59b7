import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { detectEncoding, type Encoding, sampleBytes } from "./text-encoding.ts";

/** Opened so, a pipe does not wait for a writer, and a link that took the file's place meanwhile is not followed. */
export function openRegular(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
}

/** By the first bytes of an open file. */
export async function sampleEncoding(handle: FileHandle, size: number): Promise<Encoding | "binary"> {
  const sample = Buffer.alloc(Math.min(size, sampleBytes));
  const { bytesRead } = await handle.read(sample, 0, sample.length, 0);
  return detectEncoding(sample.subarray(0, bytesRead));
}
