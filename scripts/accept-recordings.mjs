/** Replays recordings of real clients and compares the recorded usage with the clients' own figures:
 *
 *    npm run accept:recordings -- DIR
 *
 *  Each folder of DIR that has an expected.json is one recording: { "paths": [where the client keeps its sessions],
 *  "input": all input tokens, "read": those from the cache, "output": all output tokens, "calls"?: answers }. The figures
 *  are what the client itself printed, such as `modelUsage` of Claude Code or `turn.completed` of Codex. Clients are not
 *  part of this project: install them elsewhere, and run them against a scripted model. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const [folder] = process.argv.slice(2);
if (folder === undefined || !existsSync(command)) {
  console.error("usage: npm run build && npm run accept:recordings -- DIR");
  process.exit(2);
}

const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, "expected.json")));
const problems = names.flatMap((name) => check(name).map((problem) => `${name}: ${problem}`));
for (const problem of problems) console.error(problem);
console.log(`${names.length} recordings, ${problems.length} problems`);
process.exit(problems.length > 0 || names.length === 0 ? 1 : 0);

function check(name) {
  const own = resolve(folder, name);
  const { paths = ["."], ...expected } = JSON.parse(readFileSync(join(own, "expected.json"), "utf8"));
  const flags = ["--window", "64000,200000", "--policy", "none,economic", "--prefix-tokens", "0", "--json"];
  const run = spawnSync(process.execPath, [command, "replay", ...paths, ...flags], {
    cwd: own,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  if (run.status !== 0) return [`replay ended with ${run.status}: ${run.stderr.trim()}`];
  const { recorded, results } = JSON.parse(run.stdout);
  const found = { input: recorded?.total, read: recorded?.read, output: recorded?.output, calls: results[0].calls };
  const wrong = Object.entries(expected).filter(([field, value]) => found[field] !== value);
  const leftOut = run.stderr.split("\n").filter((line) => /: left out: /.test(line));
  const invalid = results.filter((row) => row.invalid > 0).map(({ policy, window }) => `${policy} at ${window}`);
  console.log(`${name}: ${found.calls} calls, ${found.input} input tokens, ${found.read} read, ${found.output} output`);
  return [
    ...wrong.map(([field, value]) => `${field} is ${found[field]}, but the client says ${value}`),
    ...leftOut,
    ...invalid.map((where) => `invalid requests with ${where}`),
  ];
}
