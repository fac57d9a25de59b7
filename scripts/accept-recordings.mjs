/** Reads recordings of real clients with `replay` and `bill`, and compares the usage with what was billed:
 *
 *    npm run accept:recordings -- DIR [--clients FOLDER] [--ccusage FOLDER]
 *
 *  With --clients, the clients that are installed below FOLDER are run first, against a scripted model that bills with a
 *  prompt cache; see scripts/agents/clients.mjs. Each folder of DIR that has an expected.json is one recording:
 *  { "paths": [where the client keeps its sessions], "input": all input tokens, "read": those from the cache, "output":
 *  all output tokens, "calls"?: answers, "write5m"?, "write1h"? }. With --ccusage, sums of Claude Code and Codex are also
 *  compared with those of ccusage. Clients are not part of this project: install them elsewhere. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { recordClients } from "./agents/record-clients.mjs";

/** The share of what input cost that may be lost without a cause. */
const mostUnexplained = 0.02;
const command = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const options = { clients: { type: "string" }, ccusage: { type: "string" } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const [folder] = positionals;
if (folder === undefined || !existsSync(command)) {
  console.error("usage: npm run build && npm run accept:recordings -- DIR [--clients FOLDER] [--ccusage FOLDER]");
  process.exit(2);
}

if (values.clients !== undefined) await recordClients({ clients: resolve(values.clients), target: resolve(folder) });
const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, "expected.json")));
const problems = names.flatMap((name) => {
  const own = resolve(folder, name);
  const { paths = ["."], ...expected } = JSON.parse(readFileSync(join(own, "expected.json"), "utf8"));
  const found = [...checkReplay(own, paths, expected), ...checkBill(own, paths, expected), ...checkPeer(own, expected)];
  return found.map((problem) => `${name}: ${problem}`);
});
for (const problem of problems) console.error(problem);
console.log(`${names.length} recordings, ${problems.length} problems`);
process.exit(problems.length > 0 || names.length === 0 ? 1 : 0);

/** The recording's own HOME, so that nothing of the person's is read. */
function runIn(own, program, args) {
  const env = {
    PATH: process.env.PATH,
    HOME: own,
    XDG_STATE_HOME: join(own, "state"),
    CODEX_HOME: join(own, ".codex"),
  };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: own, env, encoding: "utf8", maxBuffer: 2 ** 28 });
  return status === 0 ? { json: JSON.parse(stdout), stderr } : { error: `ended with ${status}: ${stderr.trim()}` };
}

function checkReplay(own, paths, { calls, input, read, output }) {
  const flags = ["--window", "128000,200000", "--policy", "none,economic", "--json"];
  const { json, stderr, error } = runIn(own, process.execPath, [command, "replay", ...paths, ...flags]);
  if (error !== undefined) return [`replay ${error}`];
  const { recorded, results } = json;
  const found = {
    input: recorded?.total,
    read: recorded?.read,
    output: recorded?.output,
    calls: results[0]?.calls ?? recorded?.answers,
  };
  const leftOut = stderr.split("\n").filter((line) => /: left out: /.test(line));
  const invalid = results.filter((row) => row.invalid > 0).map(({ policy, window }) => `${policy} at ${window}`);
  return [
    ...differences("replay", found, { calls, input, read, output }),
    ...leftOut,
    ...compareWhatIf(own, paths, results),
    ...invalid.map((where) => `invalid requests with ${where}`),
  ];
}

/** `bill --what-if` and `replay` simulate a session in the same way. */
function compareWhatIf(own, paths, results) {
  const { json } = runIn(own, process.execPath, [command, "bill", ...paths, "--what-if", "--no-index", "--json"]);
  const dollarsOf = (name) => json?.whatIf.variants.find((variant) => variant.name === name)?.usd;
  // What cannot be simulated as it was billed is in neither. `checkBill` prints the reason.
  if (results.length === 0 && json?.whatIf.sessions === 0) return [];
  return [128, 200].flatMap((thousands) => {
    const row = results.find(({ window, policy }) => window === 1000 * thousands && policy === "economic");
    const usd = row?.usd;
    const other = dollarsOf(`economic, ${thousands}k`);
    return Math.abs(usd / other - 1) <= 0.01 ? [] : [`economic at ${thousands}k: $${usd} in replay, $${other} in bill`];
  });
}

function checkBill(own, paths, { calls, input, read, output, write5m, write1h }) {
  const flags = ["--what-if", "--no-index", "--json"];
  const { json, stderr, error } = runIn(own, process.execPath, [command, "bill", ...paths, ...flags]);
  if (error !== undefined) return [`bill ${error}`];
  const { total, causes, recordings, whatIf } = json;
  const sum = total.uncached + total.write5m + total.write1h + total.read;
  const unexplained = causes.find(({ cause }) => cause === "unexplained")?.share ?? 0;
  const losses = causes.map(({ cause, events }) => `${events} ${cause}`).join(", ") || "no losses";
  const fit = whatIf.sessions === 0 ? "none" : `${whatIf.sessions} at ${(100 * whatIf.fit).toFixed(1)} %`;
  console.log(
    `${own.split("/").at(-1)}: ${total.calls} calls, ${sum} input tokens, ${total.read} read; ${losses}; simulated: ${fit}`,
  );
  for (const { session, reason } of whatIf.leftOut) console.log(`  left out of what-if: ${session}: ${reason}`);
  return [
    ...differences("bill", { ...total, input: sum }, { calls, input, read, output, write5m, write1h }),
    ...(stderr === "" ? [] : [`bill says ${stderr.trim()}`]),
    ...(recordings.damagedLines > 0 ? [`${recordings.damagedLines} damaged lines`] : []),
    ...(unexplained < mostUnexplained ? [] : [`${(100 * unexplained).toFixed(1)} % of input is unexplained`]),
  ];
}

function checkPeer(own, { input, read, output }) {
  const isKnown = [".claude", ".codex"].some((place) => existsSync(join(own, place)));
  if (values.ccusage === undefined || !isKnown) return [];
  const peer = join(resolve(values.ccusage), "node_modules/.bin/ccusage");
  const { json, error } = runIn(own, peer, ["daily", "--json", "--offline"]);
  if (error !== undefined) return [`ccusage ${error}`];
  const { inputTokens, cacheCreationTokens, cacheReadTokens, outputTokens } = json.totals;
  const total = inputTokens + cacheCreationTokens + cacheReadTokens;
  return differences("ccusage", { input: total, read: cacheReadTokens, output: outputTokens }, { input, read, output });
}

function differences(who, found, expected) {
  return Object.entries(expected)
    .filter(([field, value]) => value !== undefined && found[field] !== value)
    .map(([field, value]) => `${field} is ${found[field]} for ${who}, but ${value} was billed`);
}
