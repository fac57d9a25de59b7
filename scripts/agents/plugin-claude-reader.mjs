/** A long session of the real Claude Code with random reads and changes of files. A reader who sees only the last request
 *  puts every shortened result together, and compares it with the original. There are no parallel calls: the client may
 *  send their results in another order than they came. */
import { join } from "node:path";
// biome-ignore lint/correctness/useImportExtensions: the file beside it has only its types
import { createDeltaReader } from "../../test/generate/delta-reader.mjs";
import { converse, open, read, run } from "./claude-runs.mjs";

export async function acceptReader({ check, ...context }) {
  for (const seed of [1, 2, 3, 4]) {
    const random = createRandom(seed);
    const files = Object.fromEntries(names.map((name) => [name, textOf(random, 40 + random(50))]));
    const place = await open(context, { files });
    const turns = Array.from({ length: 70 }, () => actions[random(actions.length)](random));
    const { code, requests } = await converse(place, { turns, allowed: "Read Bash Write" });
    const { edited, wrong } = await readBack(place, requests.at(-1)?.body.messages ?? []);
    check(
      code === 0 && edited > 10 && wrong.length === 0,
      `random session ${seed}: ${edited} shortened results, ${wrong.length} that a reader gets wrong`,
      wrong,
    );
  }
}

const names = ["a.ts", "b.py", "c.md"];
const bash = (command) => ({ name: "Bash", input: { command, description: "run" } });
const changed = "changed line of this file, with more text";

const actions = [
  (random) => read(fileOf(random)),
  (random) => read(fileOf(random)),
  (random) => read(fileOf(random), { offset: 1 + random(40), limit: 20 + random(40) }),
  (random) => bash(`cat ${fileOf(random)}`),
  (random) => bash(`cat -n ${fileOf(random)}; echo 'the state of this project is as good as it was before'`),
  (random) => bash(`grep -n value ${fileOf(random)}`),
  (random) => bash(`sed -n ${1 + random(20)},${50 + random(20)}p ${fileOf(random)}`),
  (random) => bash(`sed -i '${1 + random(40)}s/.*/${changed} ${random(4)}/' ${fileOf(random)}`),
  (random) => bash(`sed -i '${1 + random(40)}d' ${fileOf(random)}`),
  (random) => bash(`sed -i '${1 + random(40)}i ${changed} ${random(3)}' ${fileOf(random)}`),
  (random) => bash(`cp ${fileOf(random)} .old; git diff --no-index .old ${fileOf(random)}; true`),
  (random) => ({ name: "Write", input: { file_path: "d.ts", content: textOf(random, 30 + random(20)) } }),
  (random) => bash(`cat d.ts; exit ${random(2) * 3}`),
];

function fileOf(random) {
  return names[random(names.length)];
}

function textOf(random, count) {
  const forms = [
    (n) => `export const value${n} = compute(${n * 7}, "some text");`,
    (n) => `  indented line number ${n} of this file`,
    (n) => `\tif (isReady(${n})) return call(${n});`,
    () => "",
    () => "}",
  ];
  return Array.from({ length: count }, (_, n) => forms[random(2) * random(forms.length)](n)).join("\n");
}

/** Returns the same numbers for the same seed. */
function createRandom(seed) {
  let state = (seed * 2_654_435_761) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

async function readBack(place, messages) {
  const { labelOf } = await import("../../dist/intake/read-call.js");
  const reader = createDeltaReader(await import("../../dist/intake/result-lines.js"));
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const calls = new Map(blocks.filter(({ type }) => type === "tool_use").map((block) => [block.id, block]));
  let edited = 0;
  const wrong = [];
  for (const { content, tool_use_id } of blocks.filter(({ type }) => type === "tool_result")) {
    const { name, input } = calls.get(tool_use_id);
    const text = [content]
      .flat()
      .map((each) => each.text ?? each)
      .join("\n")
      .split("\n\n<system-reminder>")[0];
    const id = /plimsoll recall ([a-z2-7]{10})/.exec(text.split("\n")[0])?.[1];
    // The client leaves out the tab after the number of an empty last line.
    const whole = (id === undefined ? text : run(place, ["recall", id]).replace(/\n$/, "")).replace(/(\n\d+)$/, "$1\t");
    const lines = id === undefined ? undefined : reader.linesIn(text.replace(/(\n\d+)$/, "$1\t"), whole);
    if (lines !== undefined) edited++;
    if (lines !== undefined && lines.join("\n") !== reader.linesOf(whole).join("\n")) wrong.push(text.slice(0, 600));
    const path = input.file_path === undefined ? {} : { file_path: join(place.project, input.file_path) };
    reader.see(labelOf({ tool: name, input: { ...input, ...path } }), whole, name === "Write" ? [input.content] : []);
  }
  return { edited, wrong };
}
