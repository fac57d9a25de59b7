/** Sums the usage in all lines of Claude Code's recordings, without Plimsoll's readers, and compares it with `bill`:
 *
 *    npm run build && node scripts/sum-usage.mjs DIR
 *
 *  An answer counts once by the id of its message, also in copies and in the `progress` lines of sub-agents, with the
 *  largest report. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const folder = resolve(process.argv[2] ?? ".");
const kinds = {
  uncached: (usage) => usage.input_tokens,
  write1h: (usage) => usage.cache_creation?.ephemeral_1h_input_tokens,
  write5m: (usage) => (usage.cache_creation_input_tokens ?? 0) - (usage.cache_creation?.ephemeral_1h_input_tokens ?? 0),
  read: (usage) => usage.cache_read_input_tokens,
  output: (usage) => usage.output_tokens,
};
const answers = new Map();

/** Looks for answers anywhere in a line, so that no form of a line is missed. */
function findAnswers(value) {
  if (typeof value !== "object" || value === null) return;
  const { id, usage, role, model } = value;
  if (role === "assistant" && typeof id === "string" && usage && model !== "<synthetic>") addAnswer(id, usage);
  else for (const each of Object.values(value)) findAnswers(each);
}

function addAnswer(id, usage) {
  const tokens = Object.fromEntries(Object.entries(kinds).map(([kind, read]) => [kind, read(usage) ?? 0]));
  const sum = (each) => Object.values(each).reduce((all, count) => all + count, 0);
  if (sum(tokens) > 0 && (!answers.has(id) || sum(tokens) >= sum(answers.get(id)))) answers.set(id, tokens);
}

for (const file of readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".jsonl"))) {
  for (const line of readFileSync(join(folder, file), "utf8").split("\n")) {
    if (!line.includes('"usage"')) continue;
    try {
      findAnswers(JSON.parse(line));
    } catch {
      console.log(`damaged line in ${file}`);
    }
  }
}
const expected = { calls: answers.size };
for (const tokens of answers.values())
  for (const [kind, count] of Object.entries(tokens)) expected[kind] = (expected[kind] ?? 0) + count;
const command = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const flags = ["bill", folder, "--no-index", "--json"];
const { total } = JSON.parse(execFileSync(process.execPath, [command, ...flags], { maxBuffer: 2 ** 28 }));
const wrong = Object.keys(expected).filter((kind) => expected[kind] !== total[kind]);
for (const kind of Object.keys(expected))
  console.log(`${kind}: ${expected[kind]} in the lines, ${total[kind]} in bill`);
process.exitCode = wrong.length === 0 ? 0 : 1;
