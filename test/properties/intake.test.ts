/** Any sequence of results: what an edited result leaves out can be put back from what was sent before. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createIntake, type HeldLines } from "../../src/intake/index.ts";
import { createMemoryStore } from "../../src/store/index.ts";
import { createCounter } from "../../src/tokens/index.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const numRuns = isDeep ? 3_000 : 60;
const counter = await createCounter("estimate:claude-5");

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
  action: fc.constantFrom("read", "numbered", "part", "edit", "write", "run", "diff", "insist"),
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
  edit: (content, file_path, { from, length, lines }) => {
    content.splice(from % (content.length + 1), length % 7, ...lines);
    return { tool: "Edit", input: { file_path, new_string: lines.join("\n") }, text: "The file was edited." };
  },
  write: (content, file_path, { from, lines }) => {
    content.splice(0, from, ...lines);
    return { tool: "Write", input: { file_path, content: content.join("\n") }, text: "written" };
  },
  run: (content, _path, { lines }) => {
    return { tool: "Bash", input: { command: "run" }, text: [...content, ...lines].join("\r\n") };
  },
  diff: (content, _path, { from, length }) => {
    const hunk = content.slice(from, from + length).map((text, index) => `${"+- "[index % 3]}${text}`);
    return { tool: "Bash", input: { command: "git diff" }, text: ["@@ -1,3 +1,4 @@", ...hunk].join("\n") };
  },
};

/** Plays the steps on files and returns the calls with their results. */
function play(files: string[][], steps: readonly Step[]): Call[] {
  const calls: Call[] = [];
  for (const each of steps) {
    const call = plays[each.action]?.(files[each.file] as string[], `src/${each.file}.ts`, each) ?? calls.at(-1);
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

/** The line without a number or a sign of a diff, by trying what a tool may have written before it. */
function bodies(text: string): Set<string> {
  return new Set([text, text.slice(1), text.replace(/^ *\d+→/, "")]);
}

function expectHeld(calls: readonly Call[], call: Call, { start, end, sequence, isWritten, from }: HeldLines): void {
  const base = calls[sequence - 1] as Call;
  const own = call.text.split("\n");
  const texts = isWritten ? Object.values(base.input).map(String) : [base.text];
  const offset = (lines: readonly string[]): number => {
    const first = /^ *(\d+)→/.exec(lines[0] ?? "")?.[1];
    return isWritten || first === undefined || lines.length < 2 ? 1 : Number(first);
  };
  const isThere = texts.some((text) => {
    const lines = text.split("\n");
    return own.slice(start, end).every((wanted, index) => {
      const there = bodies(lines[from - offset(lines) + index] ?? "\u0000");
      return [...bodies(wanted)].some((body) => there.has(body));
    });
  });
  expect(isThere, `lines ${start}-${end} in result ${sequence}`).toBe(true);
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
          expect(text.length).toBeLessThanOrEqual(call.text.length);
          if (edit === "none") expect(text).toBe(call.text);
          else expect(await intake.recall(id ?? "")).toBe(call.text);
          if (edit === "duplicate") expect(calls.slice(0, index).some((each) => each.text === call.text)).toBe(true);
          if (edit !== "delta") continue;
          for (const range of held) expectHeld(calls, call, range);
          const left = call.text.split("\n").filter((_, at) => !held.some(({ start, end }) => at >= start && at < end));
          // Notes cannot be told from a line that looks like one, so neither is compared.
          const isNote = (each: string): boolean => /^\[lines? \d+/.test(each);
          const shown = text.split("\n").slice(1);
          expect(shown.filter((each) => !isNote(each))).toEqual(left.filter((each) => !isNote(each)));
        }
      },
    ),
    { numRuns },
  );
});

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
