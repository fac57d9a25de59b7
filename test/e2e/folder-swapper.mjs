/**
 * A process that replaces a folder by a link and puts it back, as fast as it can:
 * node folder-swapper.mjs MILLISECONDS FOLDER TARGET ASIDE [NAME...]. The folder and the link wait in ASIDE for their
 * turn. A folder that was removed is made again with files of these names, or not if the first name is "-".
 */
import { lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

const [milliseconds, folder, target, aside, ...names] = process.argv.slice(2);
const [real, link] = [join(aside, "real"), join(aside, "link")];
symlinkSync(target, link);
writeSync(1, "ready\n");
const end = performance.now() + Number(milliseconds);
while (performance.now() < end) {
  try {
    renameSync(folder, real);
    renameSync(link, folder);
    pause();
    renameSync(folder, link);
    renameSync(real, folder);
    pause();
  } catch {
    repair();
  }
}

/** Lets the other process meet both states, and every moment of it. */
function pause() {
  const until = performance.now() + Math.random() * 0.3;
  while (performance.now() < until);
}

/** The other process may have made or removed anything at any step. */
function repair() {
  try {
    const found = lstatSync(folder, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) renameSync(folder, link);
    if (lstatSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync(target, link);
    if (names[0] === "-") return rmSync(real, { recursive: true, force: true });
    if (found?.isDirectory()) return rmSync(real, { recursive: true, force: true });
    mkdirSync(real, { recursive: true });
    for (const name of names) writeFileSync(join(real, name), "ours");
    mkdirSync(dirname(folder), { recursive: true });
    renameSync(real, folder);
  } catch {
    // The other process was faster. The next round looks again.
  }
}
