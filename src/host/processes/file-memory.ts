/** Remembers what a program answered while the files that it read are unchanged. */

import { statSync } from "node:fs";

export interface Asked<T> {
  readonly answer: T;
  /** Every file and folder that the answer depends on, whether it exists or not. Without it the answer is not
   *  remembered. */
  readonly files?: readonly string[] | undefined;
}

/** Returns the remembered answer, or asks. The first answer names its files, and the second is remembered: the files must be looked at before the question.
 *  Otherwise a change between the question and the look would stay unnoticed for ever. */
export function createFileMemory<T>(): (key: string, ask: () => Promise<Asked<T>>) => Promise<T> {
  const maxKnown = 100;
  /** `state` is that of the files before the question. Without it the answer counts once. */
  const known = new Map<string, Required<Asked<T>> & { readonly state: string | undefined }>();
  return async (key, ask) => {
    const before = known.get(key);
    const state = before?.files && readFileStates(before.files);
    if (before !== undefined && state !== undefined && state === before.state) return before.answer;
    const { answer, files } = await ask();
    known.delete(key);
    if (files === undefined) return answer;
    const isSame = before !== undefined && JSON.stringify(before.files) === JSON.stringify(files);
    known.set(key, { answer, files, state: isSame ? state : undefined });
    const [oldest] = known.keys();
    if (known.size > maxKnown && oldest !== undefined) known.delete(oldest);
    return answer;
  };
}

/** Returns `undefined` if a file changed so recently that another change could look the same. */
function readFileStates(files: readonly string[]): string | undefined {
  // A file system counts time in steps of up to two seconds. Within one step a file can change twice and look the
  // same.
  const stepMs = 2_000;
  const settled = Date.now() - stepMs;
  const states = files.map((file) => {
    try {
      // Without waiting for another thread, which takes ten times as long as the look itself.
      const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) return "ENOENT";
      const { dev, ino, uid, mode, size, mtimeNs, ctimeNs } = stats;
      const identity = `${dev}:${ino}:${uid}:${mode}`;
      // A folder's times change with every file in it.
      if ((mode & 0o170000n) === 0o040000n) return identity;
      return ctimeNs / 1_000_000n > settled ? undefined : `${identity}:${size}:${mtimeNs}:${ctimeNs}`;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === "ENOTDIR" ? code : undefined;
    }
  });
  return states.includes(undefined) ? undefined : states.join();
}
