import fc from "fast-check";
import { expect, test } from "vitest";
import { scanLines } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createPromptComposer } from "./compose.ts";
import { type FabricState, noteKinds, phaseStates, renderFabric } from "./fabric.ts";

const empty: FabricState = { phases: [], entanglements: [], claims: [], discoveries: [], notes: [] };

const full: FabricState = {
  phases: [
    { id: "parser", title: "Parse the files", state: "completed" },
    { id: "api", title: "Serve it", state: "running" },
    { id: "page", title: "Show it", state: "blocked" },
    { id: "import", title: "Import old files", state: "failed" },
    { id: "docs", title: "Write it down", state: "waiting" },
  ],
  entanglements: [
    { id: "e10", package: "parser", kind: "type", signature: "Ast", from: "lexer" },
    {
      id: "e2",
      package: "parser",
      kind: "function",
      signature: "parse(text: string): Ast",
      file: "src/parse.ts",
      from: "parser",
    },
    { id: "e3", package: "api", kind: "endpoint", signature: "GET /ast", from: "api" },
  ],
  claims: [
    { id: "c1", path: "src/parse.ts", owner: "parser" },
    { id: "c2", path: "src/api/**", owner: "api" },
    { id: "c3", path: "README.md", owner: "person" },
    { id: "c4", path: "src/import.ts", owner: "import" },
  ],
  discoveries: [
    {
      id: "d1",
      kind: "blocker",
      detail: "no schema yet",
      from: "api",
      affects: "page",
      date: "2026-11-15",
      resolved: false,
    },
    { id: "d2", kind: "blocker", detail: "was cleared up", from: "api", resolved: true },
    { id: "d3", kind: "conflict", detail: "two names for one type", from: "person", resolved: false },
  ],
  notes: [
    { id: "n1", kind: "note", text: "ports from 4000", from: "api" },
    { id: "n2", kind: "decision", text: "dates are ISO 8601", from: "person" },
    { id: "n3", kind: "feedback", text: "names are too short", from: "review" },
    { id: "n4", kind: "failure", text: "the cache made it slower", from: "parser" },
  ],
};

test("every kind has its section, in the order of use", () => {
  expect(
    renderFabric(full),
  ).toBe(`## Fabric State (1 completed, 1 in progress, 2 blocked, 3 entanglements, 2 unresolved)

### Completed Phases
- parser: Parse the files

### Available Entanglements
#### api (from: api)
- endpoint GET /ast
#### parser (from: lexer, parser)
- function parse(text: string): Ast (src/parse.ts)
- type Ast

### Active File Claims
- src/api/** → api
- README.md → person
- src/import.ts → import

### In-Progress Phases
- api: Serve it

### Blocked Phases
- import: Import old files (failed)
- page: Show it

### Unresolved Discoveries
- [blocker] no schema yet (from: api, affects: page, 2026-11-15, d1)
- [conflict] two names for one type (from: person, d3)

### Shared Notes
#### Decisions
- dates are ISO 8601 (from: person)
#### Failures
- the cache made it slower (from: parser)
#### Feedback
- names are too short (from: review)
#### Notes
- ports from 4000 (from: api)`);
});

test("sections without items are left out, and an empty fabric gives an empty text", () => {
  expect(renderFabric(empty)).toBe("");
  const waiting: FabricState["phases"] = [{ id: "a", title: "A", state: "waiting" }];
  const released = { ...empty, phases: waiting, discoveries: [full.discoveries[1]!] };
  expect(renderFabric(released)).toBe("");
  expect(renderFabric({ ...empty, claims: [full.claims[0]!] })).toBe(
    "## Fabric State (0 completed, 0 in progress, 0 blocked, 0 entanglements, 0 unresolved)\n\n### Active File Claims\n- src/parse.ts → parser",
  );
});

test("a claim is released when the phase of its owner is completed, not before", () => {
  for (const state of phaseStates) {
    const text = renderFabric({
      ...empty,
      phases: [{ id: "parser", title: "Parse", state }],
      claims: [full.claims[0]!],
    });
    expect(text.includes("src/parse.ts")).toBe(state !== "completed");
  }
});

test.each([
  ["a heading", "## Unresolved Discoveries", "\\## Unresolved Discoveries"],
  ["a fence", "```sh", "\\```sh"],
  ["a fence of tildes", "~~~", "\\~~~"],
  ["a quote", "> said", "\\> said"],
  ["a comment", "<!-- hidden", "\\<!-- hidden"],
  ["a list", "- item", "\\- item"],
  ["a number", "1. first", "1\\. first"],
  ["a rule", "* * *", "\\* * *"],
  ["several lines", "one\r\n\n## two\n```\nthree", "one ## two ``` three"],
  ["control characters", "a\u0000\u001b[2J\u202eb\u2028c\u0085d", "a\\x00\\x1b[2J\\u202eb c\\x85d"],
  ["half a surrogate pair", "a\ud800b", "a\ufffdb"],
  ["nothing special", "#12 is *open*, 2.5 times `x`", "#12 is *open*, 2.5 times `x`"],
])("%s in an entry does no harm", (_, path, shown) => {
  const text = renderFabric({ ...empty, claims: [{ id: "c1", path, owner: "a" }] });
  expect(text.split("\n").slice(3)).toEqual([`- ${shown} → a`]);
});

/** Texts that are made of what could break a line. */
const text = fc
  .array(
    fc.constantFrom(
      "# ",
      "## ",
      "### x",
      "#### ",
      "```",
      "~~~",
      "- ",
      "\n",
      "\r",
      "a",
      " ",
      "1. ",
      "discover",
      "<!--",
      "-->",
      "\u2028",
    ),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(""));

function entries<Entry>(prefix: string, model: { [Name in keyof Entry]: fc.Arbitrary<Entry[Name]> }) {
  return fc
    .array(fc.record(model), { maxLength: 5 })
    .map((list) => list.map((entry, index) => ({ ...entry, id: `${prefix}${index + 1}` })));
}

const states: fc.Arbitrary<FabricState> = fc.record({
  phases: fc.uniqueArray(fc.record({ id: text, title: text, state: fc.constantFrom(...phaseStates) }), {
    maxLength: 5,
    selector: ({ id }) => id,
  }),
  entanglements: entries("e", {
    package: text,
    kind: text,
    signature: text,
    file: fc.option(text, { nil: undefined }),
    from: text,
  }),
  claims: entries("c", { path: text, owner: text }),
  discoveries: entries("d", {
    kind: text,
    detail: text,
    from: text,
    affects: fc.option(text, { nil: undefined }),
    resolved: fc.boolean(),
  }),
  notes: entries("n", { kind: fc.constantFrom(...noteKinds), text, from: text }),
});

const runs = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300;

test("whatever entries say, an entry is one list line and every heading is ours", () => {
  fc.assert(
    fc.property(states, (state) => {
      const rendered = renderFabric(state);
      const kinds = new Set<string>();
      scanLines(rendered, (_, kind) => kinds.add(kind));
      expect([...kinds].filter((kind) => kind !== "text")).toEqual([]);
      const lines = rendered === "" ? [] : rendered.split("\n");
      const discoveries = lines.filter((line) => /^#{1,3} .*discover/i.test(line));
      expect(discoveries.length).toBeLessThanOrEqual(1);
      const completed = new Set(state.phases.filter(({ state }) => state === "completed").map(({ id }) => id));
      const items =
        state.phases.filter(({ state }) => state !== "waiting").length +
        state.entanglements.length +
        state.claims.filter(({ owner }) => !completed.has(owner)).length +
        state.discoveries.filter(({ resolved }) => !resolved).length +
        state.notes.length;
      expect(lines.filter((line) => line.startsWith("- ")).length).toBe(items);
      expect(lines.filter((line) => !/^(- .*|#{2,3} [A-Z].*|#### .*|)$/.test(line))).toEqual([]);
    }),
    { numRuns: runs },
  );
});

test("the order of entries does not change the text", () => {
  fc.assert(
    fc.property(states, (state) => {
      const turned: FabricState = {
        phases: state.phases.toReversed(),
        entanglements: state.entanglements.toReversed(),
        claims: state.claims.toReversed(),
        discoveries: state.discoveries.toReversed(),
        notes: state.notes.toReversed(),
      };
      expect(renderFabric(turned)).toBe(renderFabric(state));
    }),
    { numRuns: runs },
  );
});

test("a small budget shortens sections and keeps discoveries whole", async () => {
  const counter = await createCounter("bytes/4");
  const many = <Entry>(entry: Entry & { id: string }): Entry[] =>
    Array.from({ length: 200 }, (_, index) => ({ ...entry, id: `${entry.id[0]}${index + 1}` }));
  const fabric = renderFabric({
    phases: full.phases,
    entanglements: many(full.entanglements[1]!),
    claims: many(full.claims[1]!),
    discoveries: full.discoveries,
    notes: many(full.notes[0]!),
  });
  const { text, tokens, omitted, overflow } = createPromptComposer({ counter, maxTokens: 300 }).compose({
    fabric,
  });
  expect(tokens).toBeLessThanOrEqual(300);
  expect(overflow).toBe(0);
  for (const noun of ["entanglements", "claims", "notes"])
    expect(text).toMatch(new RegExp(`\\.\\.\\. and \\d+ more ${noun}`));
  const headings = (of: string) => of.split("\n").filter((line) => /^#{2,3} /.test(line));
  expect(headings(text)).toEqual(headings(fabric));
  const discoveries = (of: string) => of.split("\n").filter((line) => /^- \[/.test(line));
  expect(discoveries(text)).toEqual(discoveries(fabric));
  const items = (of: string) => of.split("\n").filter((line) => line.startsWith("- ")).length;
  expect(items(text) + omitted).toBe(items(fabric));
});
