/** Long sessions of a real client with random reads and changes of files, also in parallel calls. A reader who sees only
 *  the last request puts every shortened result together, and compares it with the original. */
import { createDeltaReader } from "../../test/generate/delta-reader.mjs";

/** Plays sessions. `play(files, turns)` runs the client and returns the last messages, and how to get an original. `tools`
 *  make the calls of the client. */
export async function acceptReader({ check, tools, play, seeds = [1, 2, 3, 4] }) {
  for (const seed of seeds) {
    const random = createRandom(seed);
    const files = Object.fromEntries(names.map((name) => [name, textOf(random, 40 + random(50))]));
    const actions = actionsWith(tools);
    const turns = Array.from({ length: 70 }, () => actions[random(actions.length)](random));
    const { code, messages, recall, labelled } = await play(files, turns);
    const { edited, wrong } = await readBack(messages, { recall, labelled });
    check(
      code === 0 && edited > 10 && wrong.length === 0,
      `random session ${seed}: ${edited} shortened results, ${wrong.length} that a reader gets wrong`,
      wrong,
    );
  }
}

const names = ["a.ts", "b.py", "c.md"];
const changed = "changed line of this file, with more text";

function actionsWith({ read, bash, write }) {
  const [cat, change] = [
    (file) => bash(`cat ${file}`),
    (random, file) => bash(`sed -i '${1 + random(40)}s/.*/${changed} ${random(4)}/' ${file}`),
  ];
  return [
    (random) => read(fileOf(random)),
    (random) => read(fileOf(random)),
    (random) => read(fileOf(random), { offset: 1 + random(40), limit: 20 + random(40) }),
    (random) => cat(fileOf(random)),
    (random) => bash(`cat -n ${fileOf(random)}; echo 'the state of this project is as good as it was before'`),
    (random) => bash(`grep -n value ${fileOf(random)}`),
    (random) => bash(`sed -n ${1 + random(20)},${50 + random(20)}p ${fileOf(random)}`),
    (random) => change(random, fileOf(random)),
    (random) => bash(`sed -i '${1 + random(40)}d' ${fileOf(random)}`),
    (random) => bash(`sed -i '${1 + random(40)}i ${changed} ${random(3)}' ${fileOf(random)}`),
    (random) => bash(`cp ${fileOf(random)} .old; git diff --no-index .old ${fileOf(random)}; true`),
    (random) => write("d.ts", textOf(random, 30 + random(20))),
    (random) => bash(`cat d.ts; exit ${random(2) * 3}`),
    (random) => bash(testRun(random)),
    (random) => bash(testRun(random)),
    (random) => [read(fileOf(random)), read(fileOf(random)), cat(fileOf(random))],
    (random) => {
      const file = fileOf(random);
      const slow = bash(`sleep 0.${1 + random(3)}; cat ${file}`);
      return [slow, read(file), change(random, file), read(file), cat(file)];
    },
  ];
}

/** Prints what a test runner prints: another duration in each line, and sometimes a failure. */
function testRun(random) {
  const outcome = `(NR == ${1 + random(60)} ? "not ok " : "✓ ") "test number " NR " of the value that is read"`;
  return `seq 50 | awk '{ print ${outcome} " (" (NR * ${1 + random(90)}) % 97 " ms)" }'`;
}

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

/** Returns the text of a result. A hook cannot put notes into a Read, so the client sends them after it. Here they stand
 *  before and after the lines that it shows. */
function shownIn(texts) {
  const [text, ...reminders] = texts.join("\n").split("\n\n<system-reminder>\n");
  const context = reminders.map((each) => /^PostToolUse:Read hook additional context: (.*)/.exec(each)?.[1]);
  const [heading, ...notes] = context.find((each) => each !== undefined)?.match(/\[[^\]]*\]/g) ?? [];
  if (heading === undefined) return text;
  const isBefore = (note) => Number(/ (\d+)/.exec(note)?.[1]) < Number.parseInt(text, 10);
  const before = notes.filter(isBefore);
  // The client leaves out the tab after the number of an empty last line.
  const piece = text === "" ? [] : [text.replace(/^(\d+)$(?!\n)/m, "$1\t")];
  return [heading, ...before, ...piece, ...notes.slice(before.length)].join("\n");
}

/** The command adds a line break to a text that has none at its end, so its JSON is read. */
function originalIn(recalled) {
  return JSON.parse(recalled)
    .shown.map(({ text }) => text)
    .join("\n");
}

async function readBack(messages, { recall, labelled = (input) => input }) {
  const { nameResult, readFirstLine } = await import("../../dist/conversation/intake/read-call.js");
  const lineReader = await import("../../dist/conversation/intake/result-lines.js");
  const { readShape } = await import("../../dist/conversation/intake/changing-fields.js");
  const reader = createDeltaReader({ ...lineReader, readResultLines: lineReader.readComparedLines, readShape });
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const calls = new Map(blocks.filter(({ type }) => type === "tool_use").map((block) => [block.id, block]));
  let edited = 0;
  const wrong = [];
  const read = ({ content, tool_use_id }) => {
    const { name, input } = calls.get(tool_use_id);
    const text = shownIn([content].flat().map((each) => each.text ?? each));
    const id = /plimsoll recall ([a-z2-7]{16})/.exec(text.split("\n")[0])?.[1];
    // The client leaves out the tab after the number of an empty last line.
    const whole = (id === undefined ? text : originalIn(recall(id))).replace(/(\n\d+)$/, "$1\t");
    const lines = id === undefined ? undefined : reader.linesIn(text.replace(/(\n\d+)$/, "$1\t"), whole);
    if (lines !== undefined) edited++;
    // Of the last result of a turn, Claude Code leaves out white space before the first line of an output.
    if (lines !== undefined && lines.join("\n").trimStart() !== reader.linesOf(whole, lines).join("\n").trimStart())
      wrong.push(text.slice(0, 600));
    const call = { tool: name, input: labelled(input) };
    const first = readFirstLine(call);
    const label = nameResult(call, lineReader.readComparedLines(whole, first));
    return () => reader.see(label, whole, input.content === undefined ? [] : [input.content], { lines, first });
  };
  // The notes of one message mean what was shown before it.
  for (const { content } of messages) {
    const results = Array.isArray(content) ? content.filter(({ type }) => type === "tool_result") : [];
    for (const see of results.map(read)) see();
  }
  return { edited, wrong };
}
