/** Exchanges paths for links and back, as fast as it can, until it is ended. Arguments: pairs of a path and what the link
 *  leads to. A path may be a folder. */
import { renameSync, symlinkSync } from "node:fs";

const pairs = process.argv
  .slice(2)
  .flatMap((path, index, all) => (index % 2 === 0 ? [{ path, to: all[index + 1] }] : []));
for (const { path, to } of pairs) symlinkSync(to, `${path}.link`);
const until = Date.now() + 120_000;
process.stdout.write("swapping\n");
while (Date.now() < until) {
  for (const { path } of pairs) {
    renameSync(path, `${path}.own`);
    renameSync(`${path}.link`, path);
  }
  for (const { path } of pairs) {
    renameSync(path, `${path}.link`);
    renameSync(`${path}.own`, path);
  }
}
