/** Calls a built tool on a small file first, so that its code is loaded, then on a large one in the same folder: prints by how many MB
 *  the most memory that this process ever had grew. Arguments: folder, tool, arguments but for the path, as JSON. */
import { readFileSync } from "node:fs";
import { createTools } from "../../dist/results/tools/index.js";

const [root, name, args] = process.argv.slice(2);
const tool = createTools({ root }).find((each) => each.name === name);

async function read(path) {
  const result = await tool.run({ ...JSON.parse(args), path }, { signal: new AbortController().signal });
  const items = [];
  for await (const item of result.items) items.push(item);
  return items;
}

/** Not `maxRSS`, which begins with what the process that started this one had. */
function mostMegabytes() {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
}

await read("small.txt");
const before = mostMegabytes();
const items = await read("large.txt");
console.log(JSON.stringify({ grown: mostMegabytes() - before, items }));
