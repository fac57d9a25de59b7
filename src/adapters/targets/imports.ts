/** A file that imports another target (`@AGENTS.md` in CLAUDE.md) already shows the other's block: it gets none of its own. */
import { dirname, resolve } from "node:path";
import { findBlock, fromByteString, importedNames } from "../../text/index.ts";
import { followLinks, isInside, readRegularFile } from "../../workspace/index.ts";
import type { FileTarget, Places } from "./targets.ts";

/** The targets that import another one, with that other. Of two that import each other the first keeps its block. */
export async function findImports(
  targets: readonly FileTarget[],
  { root, home }: Places,
): Promise<Map<FileTarget, FileTarget>> {
  const realRoot = await followLinks(root);
  const imports = new Map<FileTarget, FileTarget>();
  for (const target of targets) {
    // A target that leads out of the root is refused later, and not read before.
    if (!target.adapters.some((adapter) => adapter.imports) || !isInside(target.realPath, realRoot)) continue;
    const read = await readRegularFile(target.realPath);
    const file = Buffer.isBuffer(read) ? read.toString("latin1") : "";
    const paths = importedPaths(fromByteString(withoutBlock(file, target)), { file: target.realPath, home });
    const imported = targets.find(
      (other) => other !== target && !imports.has(other) && paths.includes(other.realPath),
    );
    if (imported !== undefined) imports.set(target, imported);
  }
  return imports;
}

/** What a person wrote. A pack that mentions `@AGENTS.md` must not make the file that it lands in an importing one. */
function withoutBlock(file: string, { target }: FileTarget): string {
  const found = findBlock(file, target.section);
  return found.kind === "block" ? file.slice(0, found.block.start) + file.slice(found.block.end) : file;
}

/** The paths that a text imports. */
export function importedPaths(
  text: string,
  { file, home }: { readonly file: string; readonly home: string },
): string[] {
  return importedNames(text).map((name) =>
    name.startsWith("~/") ? resolve(home, name.slice(2)) : resolve(dirname(file), name),
  );
}
