/** Decides which directory the tools read: the one of the command line, else the client's roots, else the directory in
 *  which the server was started. */
import { realpath, stat } from "node:fs/promises";
import { parse } from "node:path";
import { fileURLToPath } from "node:url";
import { type ContextError, usageError } from "../../core/errors.ts";
import { type Environment, homeDirectory, isInside } from "../../host/index.ts";

/** `roots` are the addresses that the client offers, undefined if it offers none. Throws if the directory would be the
 *  home directory or the whole file system, because that is almost certainly a mistake. */
export async function chooseRoot(
  roots: readonly string[] | undefined,
  place: {
    readonly cwd: string;
    readonly env: Environment;
  },
): Promise<string> {
  const home = await realpath(homeDirectory(place.env)).catch(() => undefined);
  const isTooWide = (path: string): boolean => path === home || path === parse(path).root;
  const cwd = await realpath(place.cwd).catch(() => place.cwd);
  const offered = (
    await Promise.all(
      (roots ?? []).map(async (address) => {
        try {
          const path = await realpath(fileURLToPath(address));
          return (await stat(path)).isDirectory() ? path : undefined;
        } catch {
          return undefined;
        }
      }),
    )
  ).filter((path) => path !== undefined);
  const usable = offered.filter((path) => !isTooWide(path));
  const root = usable.find((path) => isInside(cwd, path)) ?? usable[0];
  if (root !== undefined) return root;
  const [wide] = offered;
  if (wide !== undefined) throw createRefusal(`The client offers ${describeRoot(wide, home)} as its root`);
  if (isTooWide(cwd))
    throw createRefusal(`The server was started in ${describeRoot(cwd, home)} and the client offers no roots`);
  return cwd;
}

function describeRoot(path: string, home: string | undefined): string {
  return path === home ? `the home directory (${path})` : `the whole file system (${path})`;
}

function createRefusal(what: string): ContextError {
  return usageError(
    `${what}. Plimsoll refuses to read all of it`,
    "Start the server in a project, or name a directory: plimsoll mcp --root DIR.",
  );
}
