import { isAbsolute } from "node:path";
import { rolldown } from "rolldown";

/** Returns our modules that are loaded together with these files. A trial build finds them: it leaves out what is reachable by
 *  imports but not used. */
export async function findModules(roots) {
  const isOwn = (id) => id.startsWith(".") || isAbsolute(id);
  const build = await rolldown({ input: roots, platform: "node", external: (id) => !isOwn(id), logLevel: "silent" });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const reached = new Set();
  const pending = output.filter(({ facadeModuleId }) => roots.includes(facadeModuleId)).map(({ fileName }) => fileName);
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    pending.push(...chunks.get(name).imports.filter((each) => chunks.has(each)));
  }
  // rolldown puts its own helpers into the file of some module, which then looks needed.
  const holdsHelpers = ({ moduleIds }) => moduleIds.some((id) => id.startsWith("\0"));
  const needed = [...reached].map((name) => chunks.get(name)).filter((chunk) => !holdsHelpers(chunk));
  const modules = needed.flatMap((chunk) => Object.entries(chunk.modules));
  return new Set(modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id));
}
