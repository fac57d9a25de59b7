import fc from "fast-check";
import { expect, test } from "vitest";
import { maxEntryLength } from "../../../compose/index.ts";
import { parseFabricBlock } from "./fabric-block.ts";

const whole = `Done.

\`\`\`fabric
entanglements:
  - package: parser
    kind: function
    signature: "parse(text: string): Ast"
    file: src/parse.ts
claims:
  - src/parse.ts
  - path: docs/
discoveries:
  - kind: conflict
    detail: two names for one type
    affects: page
  - no schema yet
notes:
  - kind: decision
    text: dates are ISO 8601
  - 4000
\`\`\`

Bye.
`;

const report = {
  entanglements: [
    { package: "parser", kind: "function", signature: "parse(text: string): Ast", file: "src/parse.ts" },
  ],
  claims: [{ path: "src/parse.ts" }, { path: "docs/" }],
  discoveries: [
    { kind: "conflict", detail: "two names for one type", affects: "page" },
    { detail: "no schema yet" },
  ],
  notes: [{ kind: "decision", text: "dates are ISO 8601" }, { text: "4000" }],
};

test("a block is what the agent reports, and no part of the rest", async () => {
  expect(await parseFabricBlock(whole)).toEqual({ report, problems: [], rest: "Done.\n\n\nBye." });
});

test("line breaks may be CRLF, and the fence may be of tildes or in a list", async () => {
  expect(await parseFabricBlock(whole.replaceAll("\n", "\r\n"))).toMatchObject({ report, problems: [] });
  expect(await parseFabricBlock(whole.replaceAll("```", "~~~~"))).toMatchObject({ report, problems: [] });
  const inItem = "- ```Fabric yaml\n  claims:\n    - a\n  ```\n";
  expect(await parseFabricBlock(inItem)).toMatchObject({ report: { claims: [{ path: "a" }] }, rest: "" });
});

test("a fence that ends with its list item hides no block behind it", async () => {
  const answer = "- ```sh\n  npm test\n- all good\n\n";
  expect(await parseFabricBlock(`${answer}${whole}`)).toMatchObject({ report, problems: [] });
  expect(await parseFabricBlock(`- \`\`\`fabric\n  claims: [a]\n\n${whole}`)).toMatchObject({
    report,
    problems: ["line 1: the fabric block is never closed and may be cut off, so it is not read"],
  });
});

test("a block in a list item is read to its closing fence, also where its lines are not indented", async () => {
  const answer = "- Report:\n  ```fabric\nclaims:\n  - a\n  ```\nMore ```fabric\n\n";
  const { report: both, problems, rest } = await parseFabricBlock(`${answer}${whole}`);
  expect(both).toMatchObject({ claims: [{ path: "a" }, ...(report.claims ?? [])], notes: report.notes });
  expect([problems, rest]).toEqual([[], "- Report:\nMore ```fabric\n\nDone.\n\n\nBye."]);
});

test("an answer without a block comes back as it is", async () => {
  for (const rest of [
    "",
    "plain\n",
    "```yaml\nclaims: [a]\n```\n",
    "> ```fabric\n> claims: [a]\n> ```\n",
    "````md\n```fabric\nclaims: [a]\n```\n````\n",
  ]) {
    expect(await parseFabricBlock(rest)).toEqual({ problems: [], rest });
  }
});

test("several blocks are one report", async () => {
  const answer = "```fabric\nclaims: [a]\n```\nand\n~~~fabric\nclaims: [b]\nnotes: [c]\n~~~\n";
  expect(await parseFabricBlock(answer)).toEqual({
    report: {
      entanglements: [],
      claims: [{ path: "a" }, { path: "b" }],
      discoveries: [],
      notes: [{ text: "c" }],
    },
    problems: [],
    rest: "and",
  });
});

async function read(block: string) {
  const { report, problems, rest } = await parseFabricBlock(`one\n\n\`\`\`fabric\n${block}\n\`\`\`\ntwo`);
  return { report, problems, rest };
}

const none = { entanglements: [], claims: [], discoveries: [], notes: [] };

test("an empty block reports nothing", async () => {
  for (const block of ["", "# nothing", "claims:\nnotes: []"]) {
    expect(await read(block)).toEqual({ report: none, problems: [], rest: "one\n\ntwo" });
  }
});

test("texts that YAML would refuse are taken as they are written", async () => {
  const { report, problems } = await read(
    [
      "entanglements:",
      "  - package: @scope/parser",
      "    kind: function",
      "    signature: parse(text: string, { it's: boolean }): Ast # sync",
      "discoveries:",
      "  - detail: [page] waits: no schema",
    ].join("\r\n"),
  );
  expect(problems).toEqual([]);
  expect(report).toMatchObject({
    entanglements: [
      {
        package: "@scope/parser",
        kind: "function",
        signature: "parse(text: string, { it's: boolean }): Ast # sync",
      },
    ],
    discoveries: [{ detail: "[page] waits: no schema" }],
  });
});

test("so are those in braces", async () => {
  const { report, problems } = await read(
    [
      "entanglements:",
      "  - { package: @a/b, kind: function, signature: find(code: string, kind: Kind): Link, file: src/a.ts }",
      '  - { package: a, kind: type, signature: "{ a: b, text: c", file: it\'s: here, }',
      "  - {",
      "      package: a, kind: function,",
      "      signature: save(link: Link): void",
      "    }",
      "discoveries:",
      '  - { kind: limit, detail: "real blocker" }',
      "  - `save()` is: slow",
    ].join("\n"),
  );
  expect(problems).toEqual([]);
  expect(report).toMatchObject({
    entanglements: [
      { package: "@a/b", signature: "find(code: string, kind: Kind): Link", file: "src/a.ts" },
      { kind: "type", signature: "{ a: b, text: c", file: "it's: here" },
      { kind: "function", signature: "save(link: Link): void" },
    ],
    discoveries: [{ kind: "limit", detail: "real blocker" }, { detail: "`save()` is: slow" }],
  });
});

test("an entry that cannot be read costs no other one, and is told with its line", async () => {
  const { report, problems, rest } = await read(`Here it is
entanglements:
  - { package: a, kind: function, signature: "f(x: string, file: src/a.ts }
  - { package: a, kind: type, signature: T }
discoveries:
  - kind: limit
    detail: "kept"
  - kind: limit
      detail: wrong
 - affects: page
  - detail: kept too
    from: me
claims: [a
notes: [b]
notes:
- c
`);
  expect(problems).toEqual([
    "line 4: what stands before the first key is not read",
    'line 6: malformed YAML: Missing closing "quote',
    "line 11: malformed YAML: Nested mappings are not allowed in compact mappings",
    'line 13: "discoveries[2].detail" is missing',
    'line 15: unknown key "discoveries[3].from". Allowed are kind, detail, affects.',
    "line 16: malformed YAML: Flow sequence in block collection must be sufficiently indented and end with a ]",
  ]);
  expect(report).toEqual({
    entanglements: [{ package: "a", kind: "type", signature: "T" }],
    claims: [],
    discoveries: [{ kind: "limit", detail: "kept" }, { detail: "kept too" }],
    notes: [{ text: "b" }, { text: "c" }],
  });
  expect(rest).toBe("one\n\ntwo");
});

test("what is wrong is told with its line in the answer, and all else is taken", async () => {
  const { report, problems, rest } = await read(`claims: [a]
discoverys: []
entanglements: parser
discoveries:
  - kind: blocker
  - detail: kept
    from: me
notes:
  - kind: decison
    text: lost
  - text: [x]
  - text: also kept
  - ~`);
  expect(problems).toEqual([
    'line 5: unknown key "discoverys". Did you mean "discoveries"?',
    'line 6: "entanglements" must be a list, not "parser"',
    'line 8: "discoveries[0].detail" is missing',
    'line 10: unknown key "discoveries[1].from". Allowed are kind, detail, affects.',
    'line 12: "notes[0].kind" must be one of decision, failure, feedback, note, not "decison". Did you mean "decision"?',
    'line 14: "notes[1].text" must be a text, not a list',
    'line 16: "notes[3]" must be a mapping of keys, not empty',
  ]);
  expect(report).toEqual({
    ...none,
    claims: [{ path: "a" }],
    discoveries: [{ detail: "kept" }],
    notes: [{ text: "also kept" }],
  });
  expect(rest).toBe("one\n\ntwo");
});

test("a text is at most as long as an entry may be", async () => {
  const long = "x".repeat(maxEntryLength);
  expect((await read(`notes: ["${long}", "${long}x", "  "]`)).report?.notes).toEqual([{ text: long }]);
  const { problems } = await read(`notes: ["${long}x", "  "]`);
  expect(problems[0]).toMatch(
    /^line 4: "notes\[0\]\.text" must be a text of at most 2,000 characters, not "x+…$/,
  );
  expect(problems[0]!.length).toBeLessThan(300);
  expect(problems[1]).toBe('line 4: "notes[1].text" must be a text that is not empty, not ""');
});

test("a problem that is cut ends with a whole character", async () => {
  const [one, two] = await Promise.all(
    ["", "x"].map(
      async (shift) => (await read(`notes: [{ kind: "${shift}${"😀".repeat(200)}", text: a }]`)).problems[0],
    ),
  );
  for (const problem of [one!, two!]) expect(problem).toMatch(/^line 4: [^\p{Surrogate}]+😀…$/u);
});

test.each([
  ["a list", "- a\n- b", /^line 4: the block must be a mapping of keys, not a list$/],
  ["a text", "all went well", /^line 4: the block must be a mapping of keys, not "all went well"$/],
  ["malformed", 'claims: [a\nnotes: "x', /^line \d: malformed YAML: /],
  [
    "an alias that grows without end",
    `a: &a [x]\n${"bcdefghi"
      .split("")
      .map((key, index) => `${key}: &${key} [${`*${"abcdefgh"[index]},`.repeat(10)}]`)
      .join("\n")}`,
    /^line 9: malformed YAML: aliases stand for too many values$/,
  ],
  ["nested deeper than the stack", "[".repeat(50_000), /^line 4: malformed YAML: nested too deeply/],
  ["keys within keys", `${"? ".repeat(30)}a`, /^line 4: malformed YAML: a key is a list/],
  ["bytes", "!!binary aaaa", /^line 4: malformed YAML: a value has a tag/],
  [
    "too large",
    `notes: ["${"x".repeat(1_000_000)}"]`,
    /^line 3: fabric blocks of more than 100,000 characters/,
  ],
])("a block that is %s is a problem and stays in the rest", async (_, block, problem) => {
  const { report, problems, rest } = await read(block);
  expect(report).toBeUndefined();
  expect(problems[0]).toMatch(problem);
  expect(rest).toContain(block);
});

test("a fence that is never closed is a problem, since the answer may be cut off", async () => {
  const answer = "x\n```fabric\nclaims: [a]\n";
  expect(await parseFabricBlock(answer)).toEqual({
    problems: ["line 2: the fabric block is never closed and may be cut off, so it is not read"],
    rest: answer,
  });
});

test("very many problems are not cut to a few", async () => {
  const block = `notes:\n${"  - {text: a, kind: b}\n".repeat(500)}`;
  const { problems } = await read(block);
  // Whoever tells them cuts: how many there are is told, too.
  expect(problems.length).toBeGreaterThan(100);
});

test("whatever an agent writes is a report or a problem, never a crash", async () => {
  const words = [
    "```fabric\n",
    "```\n",
    "~~~fabric\n",
    "~~~\n",
    "claims:\n",
    "notes:\n",
    "- ",
    "  - ",
    "text: ",
    "x",
    ": ",
    "&a ",
    "*a ",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\r\n",
    "<<: ",
    "'",
    '"',
    "| ",
    "__proto__: ",
    "null\n",
    "---\n",
    "? ",
    "!!binary ",
    "\t",
    "\u0000",
    "\ud800",
  ];
  const answers = fc.array(fc.constantFrom(...words), { maxLength: 30 }).map((parts) => parts.join(""));
  await fc.assert(
    fc.asyncProperty(answers, fc.boolean(), async (answer, isBlock) => {
      const given = isBlock ? `\`\`\`fabric\n${answer}` : answer;
      const { problems, rest } = await parseFabricBlock(given);
      expect(problems.every((problem) => typeof problem === "string" && !/[\n\r]/.test(problem))).toBe(true);
      expect(rest.length).toBeLessThanOrEqual(given.length);
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 1_000 },
  );
});
