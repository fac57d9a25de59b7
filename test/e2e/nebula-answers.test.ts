// @module-tag deep
/** Whatever an agent answers, its phase has completed: neither this run nor the next one fails for it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Run, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const block = (text: string) => `Done.\n\n~~~fabric\n${text}\n~~~\n`;
const good = "claims: [src/a.ts]\ndiscoveries:\n  - detail: the table is missing\nnotes:\n  - text: uses REST\n";

/** Of these the block cannot be read at all. */
const unreadable: Readonly<Record<string, string | Buffer>> = {
  bytes: block("!!binary aaaa"),
  "keys-in-keys": block(`${"? ".repeat(30)}a`),
  brackets: block("}".repeat(90_000)),
  "deep-list": block(`notes: ${"[".repeat(40_000)}`),
  "deep-keys": block(Array.from({ length: 400 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")),
  laughs: block(`a: &a [x]\n${"b: &b [*a,*a]\n".repeat(2)}notes: &c [*c]`),
  tags: block("notes: !!set {a, b}"),
  toml: block(`a = ${"[".repeat(1_000)}`),
  "ten-megabytes": block("notes: [x]\n".repeat(850_000)),
  unclosed: "~~~fabric\nnotes: [a",
};

const others: Readonly<Record<string, string | Buffer>> = {
  proto: block("__proto__: {a: 1}\nnotes:\n  - __proto__: [1]\n    text: a\nconstructor: [x]\n"),
  nul: Buffer.concat([Buffer.from(block("notes: [a]")), Buffer.alloc(1_000)]),
  "invalid-utf-8": Buffer.concat([Buffer.from(block("notes: [a]")), Buffer.from([0xff, 0xfe, 0xc3])]),
  "invalid-in-block": Buffer.from(block("notes: [\xff\xfe\x80]"), "latin1"),
  surrogate: block('notes: ["\\ud800"]'),
  control: block("notes: ['\u0007\u001b[31m']"),
  empty: "",
  fences: "~~~\n```\n".repeat(50_000),
  long: "x".repeat(9_000_000),
  many: block("notes: [a]").repeat(3_000),
};

const pieces = [
  "",
  "\t",
  "? ",
  "!!binary ",
  "&a ",
  "*a",
  "{",
  "]",
  "\u0000",
  "__proto__: ",
  "- ",
  "~~~\n",
  "'",
  "<<: ",
];
const count = process.env.PLIMSOLL_DEEP === "1" ? 60 : 4;

/** The same mutations in every run. */
function mutations(): Record<string, string> {
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const changed = () => {
    const at = next(good.length);
    return good.slice(0, at) + pieces[next(pieces.length)] + good.slice(at + next(6));
  };
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`mutated-${index}`, block(changed())]));
}

function writeNebula(answers: Readonly<Record<string, string | Buffer>>): void {
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n[execution]\nmax_workers = 4\n');
  const ids = Object.keys(answers);
  for (const id of [...ids, "last"]) {
    const needs = id === "last" ? JSON.stringify(ids) : "[]";
    sandbox.write(`plan/${id}.md`, `+++\nid = "${id}"\ntitle = "${id}"\ndepends_on = ${needs}\n+++\nDo it.\n`);
    writeFileSync(join(sandbox.home, `answer-${id}`), answers[id] ?? "Done.");
  }
}

const apply = (...more: string[]): Promise<Run> =>
  sandbox.run([
    ...["nebula", "apply", "plan", "--json", "--agent-command"],
    'cat >/dev/null; cat "$HOME/answer-$PLIMSOLL_PHASE"',
    ...more,
  ]);

const states = ({ stdout }: Run): string[] =>
  JSON.parse(stdout).phases.map(({ id, state }: { id: string; state: string }) => `${id} ${state}`);

test("a run with any answers completes, and so does one that goes on from it", async () => {
  const answers = { ...unreadable, ...others, ...mutations() };
  writeNebula(answers);
  const completed = [...Object.keys(answers), "last"].map((id) => `${id} completed`).sort();
  const first = await apply();
  expect(first.code, first.stderr).toBe(0);
  expect(states(first).sort()).toEqual(completed);
  // The last one is told all the answers again.
  writeFileSync(join(sandbox.home, "answer-more"), "Done.");
  sandbox.write("plan/more.md", '+++\nid = "more"\ntitle = "more"\ndepends_on = ["last", "bytes"]\n+++\nDo it.\n');
  const second = await apply("--resume");
  expect(second.code, second.stderr).toBe(0);
  expect(states(second).sort()).toEqual([...completed, "more completed"].sort());
  const shown = await sandbox.call(["fabric", "show", "--nebula", "plan", "--json"]);
  const notes = JSON.parse(shown.stdout).notes as { from: string; kind: string; text: string }[];
  for (const id of Object.keys(unreadable)) {
    const failures = notes.filter(({ from, kind }) => from === id && kind === "failure");
    expect(
      failures.map(({ text }) => text),
      id,
    ).toEqual([expect.stringMatching(/could not be read/)]);
  }
});
