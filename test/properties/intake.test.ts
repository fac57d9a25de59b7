/** Any sequence of results: what an edited result leaves out can be put back from what was sent before. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { readShape } from "../../src/conversation/intake/changing-fields.ts";
import { type AdmittedResult, createIntake, type HeldLines, type Intake } from "../../src/conversation/intake/index.ts";
import { readResultLines, unnumbered } from "../../src/conversation/intake/result-lines.ts";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { caseCount } from "../case-count.ts";
import { createDeltaReader } from "../generate/delta-reader.mjs";

const numRuns = caseCount({ few: 60, deep: 1_000, long: 3_000 });
const counter = await createCounter("estimate:claude-5");

/** Stands before lines that look like a note. */
const quote = "(text of this result) ";

const line = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.integer({ min: 0, max: 60 }).map((n) => `const name${n} = call(${n}, "some text of line ${n}");`),
  },
  fc.constantFrom(
    "",
    "}",
    "  return;",
    "Error: it failed",
    "✓ passes",
    "[lines 1-40]",
    "long ".repeat(90),
    "\r",
    "ünï 漢字 🙂",
  ),
);
const file = fc.array(line, { minLength: 0, maxLength: 150 });

/** One step of an agent: it reads a file or a part of it, edits it, or runs something. */
const step = fc.record({
  action: fc.constantFrom(
    ...["read", "numbered", "part", "edit", "write", "run", "diff", "insist"],
    ...["toggle", "grep", "status", "both", "replace"],
    ...["window", "window", "tests", "tests", "log"],
  ),
  file: fc.integer({ min: 0, max: 2 }),
  from: fc.nat(150),
  length: fc.nat(80),
  lines: fc.array(line, { maxLength: 12 }),
});

interface Call {
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly text: string;
}

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function numberedText(lines: readonly string[], first: number): string {
  return lines.map((text, index) => `${String(first + index).padStart(6)}→${text}`).join("\n");
}

type Play = (content: string[], file_path: string, step: Step) => Call;

const plays: Readonly<Record<string, Play>> = {
  read: (content, file_path) => ({ tool: "cat", input: { file_path }, text: content.join("\n") }),
  numbered: (content, file_path) => ({ tool: "Read", input: { file_path }, text: numberedText(content, 1) }),
  part: (content, file_path, { from, length }) => {
    return {
      tool: "Read",
      input: { file_path, from },
      text: numberedText(content.slice(from, from + length), from + 1),
    };
  },
  window: (content, file_path, { from, length }) => {
    const offset = 1 + 12 * (from % 3);
    const text = content.slice(offset - 1, offset + 39 + length).join("\n");
    return { tool: "read", input: { file_path, offset }, text };
  },
  tests: (content, _path, { from, length }) => {
    const outcome = (text: string, index: number): string =>
      text.startsWith("Error")
        ? `not ok ${text}`
        : `✓ ${text}${(from + index) % 5 === 0 ? "" : ` (${(from * 7 + index * length) % 90} ms)`}`;
    return { tool: "Bash", input: { command: "npm test" }, text: content.map(outcome).join("\n") };
  },
  log: (content, _path, { from, length }) => {
    const time = (index: number): string => `2026-11-19T03:${10 + (from % 50)}:${10 + (index % 50)}.${100 + length}Z`;
    const text = content.map((each, index) => `${time(index)} worker-${from % 9} ${each}`).join("\n");
    return { tool: "Bash", input: { command: "tail app.log" }, text };
  },
  edit: (content, file_path, { from, length, lines }) => {
    content.splice(from % (content.length + 1), length % 7, ...lines);
    return { tool: "Edit", input: { file_path, new_string: lines.join("\n") }, text: "The file was edited." };
  },
  write: (content, file_path, { from, lines }) => {
    content.splice(0, from, ...lines);
    return { tool: "Write", input: { file_path, content: content.join("\n") }, text: "written" };
  },
  /** Changes a line and changes it back, without the agent. */
  toggle: (content, _path, { from }) => {
    const at = from % (content.length + 1);
    content[at] = content[at] === toggled[0] ? (toggled[1] as string) : (toggled[0] as string);
    return { tool: "Bash", input: { command: "toggle" }, text: "done" };
  },
  grep: (content, file_path) => {
    const found = content.flatMap((text, index) => (/name\d?[1-5]\b/.test(text) ? [`${index + 1}:${text}`] : []));
    return { tool: "Grep", input: { file_path }, text: found.join("\n") };
  },
  status: (content, file_path) => {
    const text = `status of ${content.length} lines that follow here\n${numberedText(content, 1)}\n(the end of all lines)`;
    return { tool: "Show", input: { file_path }, text };
  },
  both: (content, file_path, { from }) => {
    const [one, other] = [content.slice(0, from), content.slice(from)];
    return { tool: "Both", input: { file_path }, text: `${numberedText(one, 1)}\n${numberedText(other, 1)}` };
  },
  replace: (content, file_path, { from, length, lines }) => {
    const at = from % (content.length + 1);
    const old_string = content.splice(at, length % 9, ...lines).join("\n");
    return {
      tool: "Edit",
      input: { file_path, old_string, new_string: lines.join("\n") },
      text: "The file was edited.",
    };
  },
  run: (content, _path, { lines }) => {
    return { tool: "Bash", input: { command: "run" }, text: [...content, ...lines].join("\r\n") };
  },
  diff: (content, _path, { from, length }) => {
    const hunk = content.slice(from, from + length).map((text, index) => `${"+- "[index % 3]}${text}`);
    return { tool: "Bash", input: { command: "git diff" }, text: ["@@ -1,3 +1,4 @@", ...hunk].join("\n") };
  },
};

const toggled = ['const enabled = readSetting("enabled") === true;', "const enabled = false; // until it works again"];

/** Plays the steps on files and returns the calls with their results. */
function play(files: string[][], steps: readonly Step[]): Call[] {
  const calls: Call[] = [];
  for (const each of steps) {
    const call = plays[each.action]?.(files[each.file] as string[], `src/${each.file}.ts`, each) ?? calls.at(-1);
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

function expectHeld(calls: readonly Call[], call: Call, held: HeldLines): void {
  const { start, end, sequence, isWritten, from, differing } = held;
  const base = calls[sequence - 1] as Call;
  const own = readResultLines(call.text).slice(start, end);
  const texts = isWritten
    ? Object.values(base.input).map(
        (text) =>
          new Map(
            String(text)
              .split("\n")
              .map((body, at) => [at + 1, body]),
          ),
      )
    : [new Map(readResultLines(base.text, firstOf(base)).map(({ number, body }) => [number, body]))];
  const plain = (text: string): string => (differing === undefined ? text : readShape(text));
  // A diff has a sign before the lines of a file.
  const isThere = texts.some((text) =>
    own.every(({ body, sign = "" }, index) => {
      return [plain(body), body.slice(sign.length)].includes(plain(text.get(from + index) ?? ""));
    }),
  );
  expect(isThere, `lines ${start}-${end} in result ${sequence}`).toBe(true);
}

function firstOf({ input: { offset } }: Call): number | undefined {
  return typeof offset === "number" ? offset : undefined;
}

test("what a delta leaves out stands where it says, and the rest is shown", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(file, file, file),
      fc.array(step, { minLength: 2, maxLength: 14 }),
      async (files, steps) => {
        const calls = play(
          files.map((lines) => [...lines]),
          steps,
        );
        const intake = await createIntake({ counter, sessionId: "s", maxResultTokens: 6_000, pageTokens: 3_000 });
        for (const [index, call] of calls.entries()) {
          const { text, edit, held = [], id, tokens } = await intake.admit(call);
          expect(tokens).toBe(counter.count(text));
          const plain = text.replaceAll(quote, "");
          expect(plain.length).toBeLessThanOrEqual(call.text.length);
          if (edit === "none" || edit === "quote") expect(plain).toBe(call.text);
          else expect(await intake.recall(id ?? "")).toBe(call.text);
          if (edit === "duplicate") expect(calls.slice(0, index).some((each) => each.text === call.text)).toBe(true);
          if (edit !== "delta") continue;
          for (const range of held) expectHeld(calls, call, range);
          const left = call.text.split("\n").filter((_, at) => !held.some(({ start, end }) => at >= start && at < end));
          const isNote = (each: string): boolean => /^\[[a-z2-7]{4} (?:repeated )?(?:unnumbered )?\d+/.test(each);
          const shown = text.replaceAll(quote, "").split("\n").slice(1);
          expect(shown.filter((each) => !isNote(each))).toEqual(left);
        }
      },
    ),
    { numRuns },
  );
});

test("a reader who sees only what is sent puts every delta together again", async () => {
  expect(await readBack("in order")).toBeGreaterThan(readSessions);
}, 120_000);

test("the same reader, if the results of parallel calls are sent in any order", async () => {
  expect(await readBack("in any order")).toBeGreaterThan(readSessions);
}, 120_000);

const readSessions = caseCount({ few: 40, deep: 300, long: 1_000 });

/** How many calls each turn has, and in which order their results are sent. */
const turnSizes = fc.array(
  fc.record({ calls: fc.integer({ min: 1, max: 4 }), order: fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }) }),
  { minLength: 25 },
);

const windows = fc.constantFrom(4_000, 40_000, undefined);

const notes = { alike: /, but for /, repeated: / repeated \d/, windows: / from \d+(?: above|[\],])/ } as const;
const kindsOfNotes = ["alike", "repeated", "windows"] as const;

/** Returns how many deltas the reader has put together. */
async function readBack(sent: "in order" | "in any order"): Promise<number> {
  const longFile = fc.array(line, { minLength: 30, maxLength: 90, size: "max" });
  const steps = fc.array(step, { minLength: 12, maxLength: 25, size: "max" });
  let deltas = 0;
  const seen = { alike: 0, repeated: 0, windows: 0 };
  await fc.assert(
    fc.asyncProperty(longFile, longFile, steps, turnSizes, windows, async (one, other, taken, sizes, deltaWindow) => {
      const calls = play([[...one], [...other], [...one]], taken);
      const limits = { deltaWindow, maxResultTokens: 1_000_000 };
      const intake = await createIntake({ counter, sessionId: "s", ...limits });
      const reader = createDeltaReader({ readResultLines, unnumbered, readShape });
      for (const turn = [...sizes]; calls.length > 0; ) {
        const { calls: most, order } = turn.shift() ?? { calls: 1, order: [0] };
        const admitted = await admitTurn(intake, calls.splice(0, most), sent);
        const places = sent === "in order" ? order.toSorted() : order;
        for (const each of places.flatMap((place) => admitted[place] ?? [])) expectRead(reader, each);
        deltas += admitted.filter(({ edit }) => edit === "delta").length;
        for (const kind of kindsOfNotes) seen[kind] += admitted.filter(({ text }) => notes[kind].test(text)).length;
      }
    }),
    { numRuns: readSessions },
  );
  for (const kind of kindsOfNotes) expect(seen[kind], kind).toBeGreaterThan(readSessions / 10);
  return deltas;
}

interface AdmittedCall extends Pick<AdmittedResult, "text" | "edit"> {
  readonly call: Call;
}

async function admitTurn(intake: Intake, calls: readonly Call[], sent: "in order" | "in any order") {
  const admitted: AdmittedCall[] = [];
  for (const [index, call] of calls.entries()) {
    const unfinished = sent === "in order" ? undefined : calls.slice(index + 1);
    admitted.push({ call, ...(await intake.admit({ ...call, isParallel: index > 0, unfinished })) });
  }
  return admitted;
}

function expectRead(reader: ReturnType<typeof createDeltaReader>, { call, text, edit }: AdmittedCall): void {
  const { file_path, command, offset } = call.input;
  const isEdited = edit !== "none" && edit !== "quote";
  const lines = isEdited ? reader.linesIn(text, call.text) : undefined;
  if (edit === "quote") expect(text.replaceAll(quote, "")).toBe(call.text);
  else if (isEdited) expect(lines, text).toEqual(reader.linesOf(call.text, lines));
  const from = typeof offset === "number" && offset > 1 ? ` from ${offset}` : "";
  reader.see(`${call.tool} ${file_path ?? command}${from}`, call.text, textsWritten(call), {
    lines,
    first: firstOf(call),
  });
}

/** Shorter texts are not referred to. */
function textsWritten({ input: { new_string, content } }: Call): string[] {
  return [new_string, content].filter((each): each is string => typeof each === "string" && each.length >= 80);
}

test("the same results give the same bytes, also if every call has a process of its own", async () => {
  await fc.assert(
    fc.asyncProperty(file, fc.array(step, { maxLength: 10 }), async (content, steps) => {
      const calls = play([[...content], [], []], steps);
      const [one, two] = [createMemoryStore(), createMemoryStore()];
      const whole = await createIntake({ counter, sessionId: "s", store: one });
      for (const call of calls) {
        const again = await createIntake({ counter, sessionId: "s", store: two });
        expect(await again.admit(call)).toEqual(await whole.admit(call));
      }
    }),
    { numRuns },
  );
});

test("a page is within its budget and keeps every failure that fits", async () => {
  const output = fc.array(
    fc.oneof(
      line,
      fc.nat(9).map((n) => ` FAIL  test-${n}`),
    ),
    { minLength: 300, maxLength: 900 },
  );
  await fc.assert(
    fc.asyncProperty(output, fc.integer({ min: 200, max: 2_000 }), async (lines, pageTokens) => {
      const options = { maxResultTokens: 2_000, pageTokens, deltas: false };
      const intake = await createIntake({ counter, sessionId: "s", ...options });
      const { text, edit, tokens } = await intake.admit({
        tool: "Bash",
        input: { command: "x" },
        text: lines.join("\n"),
      });
      if (edit === "none") return;
      expect(tokens).toBeLessThanOrEqual(pageTokens);
      const shown = text.split("\n");
      const failures = lines.filter((each) => each.startsWith(" FAIL"));
      // Passing lines are shown only if all failures are.
      if (shown.includes("✓ passes")) for (const each of failures) expect(shown).toContain(each);
    }),
    { numRuns: Math.ceil(numRuns / 3) },
  );
});
