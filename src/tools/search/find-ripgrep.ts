import { type Environment, findProgram } from "../../workspace/index.ts";

/** The one on PATH, else the one that came as an optional dependency. Undefined without both. */
export async function findRipgrep(env: Environment): Promise<string | undefined> {
  return (await findProgram("rg", env)) ?? installedRipgrep();
}

/** Where the package was left out, or has no program for this machine, that is no mistake. */
async function installedRipgrep(): Promise<string | undefined> {
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    return rgPath;
  } catch {
    return undefined;
  }
}
