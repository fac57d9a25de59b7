/**
 * A process that replaces a folder by a link and puts it back, as fast as it can:
 * node folder-swapper.mjs MILLISECONDS FOLDER TARGET ASIDE. The folder and the link wait in ASIDE for their turn.
 */
import { lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

const [milliseconds, folder, target, aside] = process.argv.slice(2);
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

/** The other process may have made or removed the folder at any step. */
function repair() {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) renameSync(folder, link);
  const hasReal = lstatSync(real, { throwIfNoEntry: false }) !== undefined;
  try {
    if (hasReal && found?.isDirectory()) rmSync(folder, { recursive: true, force: true });
    if (hasReal) renameSync(real, folder);
    else mkdirSync(folder, { recursive: true });
  } catch {
    // The other process was faster. The next round looks again.
  }
}
