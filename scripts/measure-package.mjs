/** Prints what an installation costs, beside the bounds that it must keep: `npm run measure:package`. Installs the packed package into
 *  temporary folders. Without a registry, the row about optional packages is left out. A broken bound ends the process with 1. */
import { execFileSync, spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-measure-"));
const rows = [];
try {
  const archive = pack();
  // Without a network and with an empty cache: the package needs nothing but itself.
  const alone = install("alone", ["--offline", "--cache", join(scratch, "cache"), "--omit=optional", archive]);
  row("packages, without optional ones", countPackages(alone), 1);
  row("MB on disk, without optional packages", megabytes(alone), 12);
  const whole = install("whole", [archive]);
  if (whole !== undefined) row("MB on disk, with optional packages", megabytes(whole), 37);
  for (const [door, sdk] of Object.entries(sdks())) {
    row(`import of plimsoll/${door} ÷ its SDK`, compareImports(doorFile(alone, door), sdk, 0.3), 0.3);
  }
  for (const door of ["anthropic", "openai", "ai-sdk", "fetch", "history", "tokens"]) {
    row(`plimsoll/${door} in a Worker, KB gzip`, await workerKilobytes(doorFile(alone, door)), 60);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const broken = rows.filter(({ value, most }) => !(value <= most));
console.log(`${rows.length - broken.length} within their bounds, ${broken.length} beyond`);
process.exit(broken.length === 0 ? 0 : 1);

function row(name, value, most) {
  rows.push({ value, most });
  console.log(`${name.padEnd(42)} ${value.toFixed(value < 1 ? 2 : 1).padStart(6)}   at most ${most}`);
}

function pack() {
  const args = ["pack", "--silent", "--pack-destination", scratch];
  const printed = execFileSync("npm", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  return join(scratch, basename(printed.trim().split("\n").at(-1)));
}

/** Returns undefined if npm could not install it. */
function install(name, args) {
  const folder = join(scratch, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const options = { cwd: folder, encoding: "utf8", shell: process.platform === "win32" };
  const { status, stderr } = spawnSync(
    "npm",
    ["install", "--no-audit", "--no-fund", "--loglevel=error", ...args],
    options,
  );
  if (status === 0) return folder;
  if (name === "alone") throw new Error(`npm could not install the package: ${stderr}`);
  console.log("optional packages could not be installed");
}

function countPackages(folder) {
  return Object.keys(JSON.parse(readFileSync(join(folder, "node_modules/.package-lock.json"), "utf8")).packages).length;
}

function megabytes(folder) {
  const paths = readdirSync(join(folder, "node_modules"), { recursive: true });
  const stats = paths.map((path) => lstatSync(join(folder, "node_modules", path)));
  return stats.reduce((sum, { blocks, size }) => sum + (blocks === undefined ? size : blocks * 512), 0) / 1e6;
}

function doorFile(folder, door) {
  const file = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).exports[`./${door}`].default;
  return join(folder, "node_modules/plimsoll", file);
}

/** The SDKs that this project tests with. */
function sdks() {
  const names = { anthropic: "@anthropic-ai/sdk", openai: "openai", "ai-sdk": "ai" };
  return Object.fromEntries(
    Object.entries(names).map(([door, name]) => [door, fileURLToPath(import.meta.resolve(name))]),
  );
}

/** Compares the CPU time of two imports, each the least of several in turn: on a busy machine a clock says little, and a busy
 *  moment must not fall on one side alone. More rounds follow while the bound is not kept. */
function compareImports(ours, theirs, most) {
  const least = { bare: Number.POSITIVE_INFINITY, ours: Number.POSITIVE_INFINITY, theirs: Number.POSITIVE_INFINITY };
  const ratio = () => (least.ours - least.bare) / (least.theirs - least.bare);
  for (let round = 0; round < 9 || (round < 60 && !(ratio() <= most)); round++) {
    for (const [name, file] of Object.entries({ bare: "", ours, theirs })) {
      const load = file === "" ? "" : `await import(${JSON.stringify(pathToFileURL(file).href)});`;
      const program = `${load} const { user, system } = process.cpuUsage(); console.log(user + system);`;
      const printed = execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
      least[name] = Math.min(least[name], Number(printed));
    }
  }
  return ratio();
}

/** What a Worker loads before the first call: the file and its static imports, minified. */
async function workerKilobytes(file) {
  const conditionNames = ["workerd", "worker", "browser"];
  const build = await rolldown({ input: file, platform: "browser", resolve: { conditionNames } });
  const { output } = await build.generate({ minify: true });
  await build.close();
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const reached = new Set([output[0].fileName]);
  for (const name of reached) for (const each of chunks.get(name)?.imports ?? []) reached.add(each);
  return gzipSync([...reached].map((name) => chunks.get(name)?.code).join("")).length / 1_000;
}
