/** Runs the tests under other majors of Node than the one that is installed: `npm run test:node -- [MAJOR...] [vitest's arguments]`.
 *  Each Node comes from the registry's package `node`, and is kept in the folder for temporary files for the next run. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const isMajor = (argument) => /^\d+$/.test(argument);
const given = process.argv.slice(2);
const majors = given.some(isMajor) ? given.filter(isMajor) : ["22", "24"];
const vitestArguments = given.filter((argument) => !isMajor(argument));

run(process.execPath, [join(root, "scripts/build.mjs")]);
const failed = majors.filter((major) => !passesUnder(install(major)));
console.log(failed.length === 0 ? `passed: Node ${majors.join(", ")}` : `failed: Node ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);

/** Returns the path of a Node of this major, which it installs unless it is there. */
function install(major) {
  const folder = join(tmpdir(), `plimsoll-node-${major}`);
  const node = join(folder, "node_modules/node/bin", process.platform === "win32" ? "node.exe" : "node");
  if (existsSync(node)) return node;
  mkdirSync(folder, { recursive: true });
  // The package fetches the binary of this platform in an install script, which npm runs only if it is allowed.
  writeFileSync(join(folder, "package.json"), '{ "private": true, "allowScripts": { "node": true } }');
  const options = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
  run("npm", ["install", "--prefix", folder, ...options, `node@${major}`]);
  return node;
}

function passesUnder(node) {
  const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  console.log(`\n> Node ${stdout?.trim()}`);
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [join(root, "node_modules/vitest/vitest.mjs"), "run", ...vitestArguments];
  const { status, signal } = spawnSync(node, args, { cwd: root, stdio: "inherit", env });
  if (signal !== null) console.log(`\nThe tests were ended by ${signal}.`);
  return status === 0;
}

function run(command, args) {
  const shell = process.platform === "win32" && command === "npm";
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell });
  if (status !== 0) process.exit(status ?? 1);
}
