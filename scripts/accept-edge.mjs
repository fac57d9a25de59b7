/** Runs the doors that need no disk in workerd, Bun and Deno, and compares the results with Node's: `npm run accept:edge -- DIR`. DIR is
 *  outside of the project and has an installation of miniflare, bun and deno; what it lacks is skipped. Uses loopback only. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { countExactly, runDoors } from "../test/e2e/edge-program.mjs";

const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error("usage: npm run accept:edge -- DIR");
  process.exit(2);
}
const root = fileURLToPath(new URL("..", import.meta.url));
const program = join(root, "test/e2e/edge-program.mjs");
const modules = join(resolve(directory), "node_modules");
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-edge-"));
const expected = await runDoors();
const exact = await countExactly();
const failures = [];
try {
  await check("workerd", join(modules, "miniflare"), runInWorker, "unknown_counter");
  await check("bun", join(modules, ".bin/bun"), (bun) => runProgram(bun, []), exact);
  await check("deno", join(modules, ".bin/deno"), (deno) => runProgram(deno, ["run", "--allow-all"]), exact);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(failures.length === 0 ? 0 : 1);

async function check(name, place, run, exactHere) {
  if (!existsSync(place)) return console.log(`${name}: skipped, ${place} is missing`);
  const { doors, count } = await run(place);
  const problems = [doors !== expected && "trims differently", count !== exactHere && `exact counter: ${count}`].filter(
    Boolean,
  );
  console.log(`${name}: ${problems.length === 0 ? "the same results as Node" : problems.join(", ")}`);
  failures.push(...problems);
}

/** As one file, with no flag for Node's modules. */
async function runInWorker(miniflare) {
  const input = join(scratch, "worker.mjs");
  writeFileSync(
    input,
    `import { countExactly, runDoors } from ${JSON.stringify(program)};
    export default { async fetch() { return Response.json({ doors: await runDoors(), count: await countExactly() }); } };`,
  );
  const conditionNames = ["workerd", "worker", "browser"];
  const build = await rolldown({ input, platform: "browser", resolve: { conditionNames } });
  const { output } = await build.generate({ format: "esm", codeSplitting: false, minify: true });
  await build.close();
  const entry = createRequire(join(miniflare, "..", "x.js")).resolve("miniflare");
  const { Miniflare } = await import(pathToFileURL(entry).href);
  const worker = new Miniflare({ modules: true, script: output[0].code, compatibilityDate: "2026-01-01" });
  const response = await worker.dispatchFetch("http://localhost/");
  const results = await response.json();
  await worker.dispose();
  return results;
}

/** Without bundling, from a folder in which the package is installed. */
function runProgram(command, args) {
  const folder = mkdtempSync(join(scratch, "project-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/plimsoll"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  writeFileSync(
    join(folder, "main.mjs"),
    `import { countExactly, runDoors } from ${JSON.stringify(program)};
    console.log(JSON.stringify({ doors: await runDoors(), count: await countExactly() }));`,
  );
  const env = { ...process.env, HOME: folder, DENO_DIR: join(scratch, "deno"), DENO_NO_UPDATE_CHECK: "1" };
  const options = { cwd: folder, env, encoding: "utf8", maxBuffer: 1 << 26 };
  return JSON.parse(execFileSync(command, [...args, "main.mjs"], options));
}
