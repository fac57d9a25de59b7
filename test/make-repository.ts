import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Makes the least that git takes for a repository, without starting git. */
export function makeRepository(folder: string): void {
  makeGitDirectory(join(folder, ".git"));
}

export function makeGitDirectory(directory: string): void {
  for (const name of ["objects", "refs"]) mkdirSync(join(directory, name), { recursive: true });
  writeFileSync(join(directory, "HEAD"), "ref: refs/heads/main\n");
}
