import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { scanLines } from "../../core/text/index.ts";
import { type Counter, counterNames, createCounter } from "../../core/tokens/index.ts";
import type { ProjectScan } from "../../host/index.ts";
import { renderSnapshot } from "./render-snapshot.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 100;

let counters: Counter[];
let bytes4: Counter;
beforeAll(async () => {
  counters = await Promise.all(counterNames.map((name) => createCounter(name)));
  bytes4 = counters[0]!;
});

const nothing: ProjectScan = { facts: [], paths: [], conventions: [], problems: [] };

function textOf(scan: Partial<ProjectScan>, maxTokens?: number): string {
  return renderSnapshot({ ...nothing, ...scan }, { counter: bytes4, maxTokens }).text;
}

/** The lines between the fences of the tree. */
function treeOf(text: string): string[] {
  const lines = text.split("\n");
  const start = lines.indexOf("## Structure") + 2;
  const fence = lines[start] ?? "";
  return start < 2 || !/^`{3,}$/.test(fence) ? [] : lines.slice(start + 1, lines.indexOf(fence, start + 1));
}

const marker = /^\[\.\.\. truncated, (\d+) (entry|entries) omitted\]$/;

it("shows the project, its tree and its conventions", () => {
  const scan = {
    facts: [
      { name: "Module", value: "example.com/ship" },
      { name: "Language", value: "Go" },
    ],
    paths: ["go.mod", "cmd/ship/main.go", "cmd/ship/main_test.go", "README.md", "a/b/c/d/e.go", "a/b/c/f.go"],
    conventions: [
      { path: "AGENTS.md", text: "# Rules\n\n- Test first.\n" },
      { path: "CONTRIBUTING.md", text: "Sign your commits." },
    ],
  };
  expect(textOf(scan)).toBe(`## Project

- Module: example.com/ship
- Language: Go

## Structure

\`\`\`
a/
  b/
    c/
      d/
        e.go
      f.go
cmd/
  ship/
    main.go
    main_test.go
README.md
go.mod
\`\`\`

## Conventions

### AGENTS.md

# Rules

- Test first.

### CONTRIBUTING.md

Sign your commits.`);
});

it("says nothing about an empty project, and nothing at all within 0 tokens", () => {
  expect(renderSnapshot(nothing, { counter: bytes4 })).toEqual({
    text: "",
    tokens: 0,
    truncated: false,
    omitted: 0,
    omittedEntries: 0,
  });
  const scan = { ...nothing, paths: ["a"] };
  expect(renderSnapshot(scan, { counter: bytes4, maxTokens: 0 })).toEqual({
    text: "",
    tokens: 0,
    truncated: true,
    omitted: 1,
    omittedEntries: 1,
  });
});

it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a limit of %s", (maxTokens) => {
  expect(() => textOf({}, maxTokens)).toThrow(
    expect.objectContaining({ code: "invalid_argument", message: `maxTokens is ${maxTokens}` }),
  );
});

it.each([
  [{ counter: "bytes/4" }, 'counter is "bytes/4"'],
  [{ maxToken: 5 }, 'unknown key "maxToken" in options'],
  [undefined, "options is undefined"],
])("refuses options of %j", (options, message) => {
  const given = options && { counter: bytes4, ...options };
  expect(() => renderSnapshot(nothing, given as never)).toThrow(
    expect.objectContaining({ code: "invalid_argument", message }),
  );
});

it("refuses a value that is not a scan", () => {
  const render = (scan: unknown) => () => renderSnapshot(scan as never, { counter: bytes4 });
  expect(render("src")).toThrow('scan is "src"');
  expect(render({ ...nothing, paths: "src" })).toThrow('scan.paths is "src"');
});

describe("very little room", () => {
  const scan = {
    ...nothing,
    facts: ["Module", "Language", "Package manager"].map((name) => ({ name, value: "a word or two" })),
    paths: ["src/a.ts", "src/b.ts", "README.md"],
    conventions: [{ path: "AGENTS.md", text: "One.\nTwo.\n\nThree.\n" }],
  };

  it("is used first to say that the tree is missing", () => {
    const facts = "## Project\n\n- Module: a word or two\n- Language: a word or two\n- Package manager: a word or two";
    const note = "[... truncated, 4 entries omitted]";
    expect(textOf(scan, 36)).toBe(`${facts}\n\n## Structure\n\n${note}`);
    expect(textOf(scan, 33)).toBe(`${facts}\n\n${note}`);
    expect(textOf(scan, 22)).toBe(`## Project\n\n- Module: a word or two\n[truncated]\n\n${note}`);
    expect(textOf(scan, 9)).toBe(note);
    expect(textOf(scan, 8)).toBe("");
  });

  it("counts what it leaves out: entries, facts and lines of conventions", () => {
    const omitted = (maxTokens: number) => renderSnapshot(scan, { counter: bytes4, maxTokens }).omitted;
    expect(omitted(1_000)).toBe(0);
    expect(omitted(36)).toBe(4 + 3);
    expect(omitted(22)).toBe(2 + 4 + 3);
    expect(omitted(8)).toBe(3 + 4 + 3);
    const twoFiles = {
      ...scan,
      conventions: [...scan.conventions, { path: "B.md", text: "b\n".repeat(400) }],
    };
    const cut = renderSnapshot(twoFiles, { counter: bytes4, maxTokens: 150 });
    expect(cut.omitted).toBe(400 - (cut.text.match(/^b$/gm)?.length ?? 0));
  });
});

describe("the tree", () => {
  const numbered = (count: number, path: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => path(index));

  it("closes a folder of more than 20 entries and no other", () => {
    const paths = [...numbered(20, (index) => `full/${index}`), ...numbered(21, (index) => `over/${index}`)];
    const tree = treeOf(textOf({ paths }));
    expect(tree).toHaveLength(22);
    expect(tree.at(-1)).toBe("over/ (21 entries)");
  });

  it("counts entries, not files: a folder in a folder is one", () => {
    const paths = numbered(50, (index) => `a/b/c/deep-${index % 2}/${index}`);
    expect(treeOf(textOf({ paths }))).toEqual(["a/", "  b/", "    c/ (2 entries)"]);
    expect(treeOf(textOf({ paths: ["a/b/c/d/e/f"] }))).toEqual(["a/", "  b/", "    c/ (1 entry)"]);
  });

  it("cuts a root of more than 100 entries, folders first, and says how many are missing", () => {
    const tree = treeOf(textOf({ paths: ["z/a", ...numbered(150, (index) => `file-${1000 + index}`)] }));
    expect(tree.slice(0, 3)).toEqual(["z/", "  a", "file-1000"]);
    expect(tree.slice(-2)).toEqual(["file-1098", "[... truncated, 51 entries omitted]"]);
  });

  it("closes level by level and keeps the root longest", () => {
    const paths = numbered(40, (index) => `area-${index % 10}/part-${index}/file.ts`);
    const all = treeOf(textOf({ paths }));
    expect(all).toHaveLength(10 + 40 + 40);
    const closed = treeOf(textOf({ paths }, 100));
    expect(closed.filter((line) => line.startsWith("area-"))).toHaveLength(10);
    expect(closed.some((line) => line.startsWith("    "))).toBe(false);
    expect(closed.at(-2)).toBe("area-9/ (4 entries)");
    const few = treeOf(textOf({ paths }, 30));
    expect(few[0]).toBe("area-0/ (4 entries)");
    expect(few.at(-1)).toBe(`[... truncated, ${90 - (few.length - 1)} entries omitted]`);
  });

  it("shows code folders before others, documents and dot folders", () => {
    const paths = [".github/x.yml", "docs/a.md", "assets/logo.svg", "zlib/src/a.c", "README.md"];
    expect(treeOf(textOf({ paths })).filter((line) => !line.startsWith(" "))).toEqual([
      "zlib/",
      "assets/",
      "docs/",
      ".github/",
      "README.md",
    ]);
  });

  it("spends what is left on deeper folders with code, breadth first, and counts none of them as missing", () => {
    const paths = ["a/b/c/d/e/deep.ts", "a/b/c/near.ts", "a/b/x/y/notes.md", "a/b/z/w/other.ts"];
    const full = renderSnapshot({ ...nothing, paths }, { counter: bytes4 });
    expect(treeOf(full.text)).toEqual([
      "a/",
      "  b/",
      "    c/",
      "      d/",
      "        e/",
      "          deep.ts",
      "      near.ts",
      "    z/",
      "      w/",
      "        other.ts",
      "    x/ (1 entry)",
    ]);
    const small = renderSnapshot({ ...nothing, paths }, { counter: bytes4, maxTokens: full.tokens - 1 });
    expect(treeOf(small.text)).toContain("        e/ (1 entry)");
    expect([small.truncated, small.omitted]).toEqual([false, 0]);
  });

  it("shows a folder with unknown content as a folder", () => {
    expect(treeOf(textOf({ paths: ["module/", "deep/other/", "a"] }))).toEqual(["deep/", "  other/", "module/", "a"]);
  });

  it("sorts by bytes, whatever the order of the paths", () => {
    const paths = ["é", "z", "Z", "a", "\u{1f600}", "\uff5e", "_", "B"];
    const sorted = ["B", "Z", "_", "a", "z", "é", "\uff5e", "\u{1f600}"];
    expect(treeOf(textOf({ paths }))).toEqual(sorted);
    expect(treeOf(textOf({ paths: paths.toReversed() }))).toEqual(sorted);
  });

  it("is not broken by the name of a file", () => {
    const paths = ["```", "`````/x", "line\nbreak", "\u001b[31mred", "tab\t", "\u202eevil", "__proto__", "~~~"];
    const text = textOf({ paths, conventions: [{ path: "AGENTS.md", text: "Rules." }] });
    expect(text).toContain("\n``````\n`````/\n");
    expect(treeOf(text)).toEqual([
      "`````/",
      "  x",
      "\\x1b[31mred",
      "__proto__",
      "```",
      "line\\nbreak",
      "tab\\t",
      "~~~",
      "\\u202eevil",
    ]);
    expect(kindsOf(text).get("## Conventions")).toBe("text");
  });
});

describe("conventions", () => {
  const files = ["A", "B", "C"].map((name) => ({ path: `${name}.md`, text: `${name} word\n`.repeat(40) }));

  it("are whole while they fit; then one is cut and the rest is counted", () => {
    const whole = textOf({ conventions: files });
    expect(whole).not.toContain("truncated");
    const cut = textOf({ conventions: files }, 120);
    expect(cut).toContain("### B.md");
    expect(cut).not.toContain("### C.md");
    expect(cut.endsWith("B word\n[truncated]\n\n[... truncated, 1 file omitted]")).toBe(true);
  });

  it("get what the tree does not need, and the tree what they do not need", () => {
    const paths = Array.from({ length: 15 }, (_, index) => `folder-${index}/file-${index}.ts`);
    const conventions = [{ path: "AGENTS.md", text: "All lines are short.\n".repeat(100) }];
    const tree = renderSnapshot({ ...nothing, paths }, { counter: bytes4 });
    const text = renderSnapshot({ ...nothing, conventions }, { counter: bytes4 });
    const both = { ...nothing, paths, conventions };
    const maxTokens = tree.tokens + text.tokens + 1;
    expect(renderSnapshot(both, { counter: bytes4, maxTokens })).toMatchObject({ truncated: false });
    const tight = renderSnapshot(both, { counter: bytes4, maxTokens: maxTokens - 20 });
    expect(tight.truncated).toBe(true);
    expect(treeOf(tight.text)).toHaveLength(30);
    expect(tight.tokens).toBeGreaterThan(maxTokens - 40);
    const crowded = renderSnapshot(both, { counter: bytes4, maxTokens: 200 });
    expect(treeOf(crowded.text).at(-1)).toMatch(marker);
    expect(crowded.text).toContain("All lines are short.\n[truncated]");
  });

  it("cannot hide or steer what follows", () => {
    const texts = [
      "```js\nnever closed",
      "before\n<!-- never closed\nafter",
      "\uFEFF<!-- for people -->\r\nESC \u001b[2J and\ttab\r\n",
    ];
    const conventions = texts.map((text, index) => ({ path: `${index}.md`, text }));
    const text = textOf({ conventions });
    expect(scanLines(text, () => {})).toBeUndefined();
    expect(kindsOf(text).get("### 1.md")).toBe("text");
    expect(text).toContain("&lt;!-- never closed\nafter");
    expect(text).toContain("### 2.md\n\nESC \\x1b[2J and\ttab");
    expect(text).not.toContain("for people");
  });

  it("are left out if they are empty", () => {
    expect(textOf({ conventions: [{ path: "AGENTS.md", text: "\n<!-- nothing -->\n" }] })).toBe("");
  });
});

function kindsOf(text: string): Map<string, string> {
  const kinds = new Map<string, string>();
  scanLines(text, ({ start, end }, kind) => kinds.set(text.slice(start, end), kind));
  return kinds;
}

it("a value of megabytes does not take the place of everything else", () => {
  const text = textOf({ facts: [{ name: "Module", value: "x".repeat(1e6) }], paths: ["a"] });
  expect(text.length).toBeLessThan(300);
  expect(treeOf(text)).toEqual(["a"]);
});

const name = fc.constantFrom("a", "b", "src", "é", "```", "-`", "\n", "\u001b[0m", "\ud83d", "日本語", "x".repeat(60));
const path = fc
  .tuple(fc.array(name, { minLength: 1, maxLength: 5 }), fc.nat(40), fc.boolean())
  .map(([names, index, isFolder]) => `${names.join("/")}-${index}${isFolder ? "/" : ""}`);
const line = fc.constantFrom(
  "text",
  "",
  "# Title",
  "```",
  "~~~~ js",
  "- ```",
  "<!-- open",
  "-->",
  "\ud83d",
  "wörter 😀 und mehr",
);
const scanOf = fc.record({
  facts: fc.array(fc.record({ name: fc.constantFrom("Module", "Language"), value: fc.string() }), {
    maxLength: 3,
  }),
  paths: fc.uniqueArray(path, { maxLength: 120 }),
  conventions: fc.array(
    fc.record({
      path: fc.constantFrom("AGENTS.md", "CLAUDE.md"),
      text: fc.array(line, { maxLength: 60 }).map((lines) => lines.join("\n")),
    }),
    { maxLength: 4 },
  ),
  problems: fc.constant([]),
});

it("is within any limit for any counter, with true counts, closed fences and the same bytes again", () => {
  const limit = fc.oneof(fc.nat(60), fc.nat(600), fc.nat(5_000));
  fc.assert(
    fc.property(scanOf, limit, fc.nat(counters.length - 1), (scan, maxTokens, which) => {
      const counter = counters[which]!;
      const { text, tokens, truncated, omitted } = renderSnapshot(scan, { counter, maxTokens });
      expect(tokens).toBe(counter.count(text));
      expect(tokens).toBeLessThanOrEqual(maxTokens);
      expect(scanLines(text, () => {})).toBeUndefined();
      expect(Buffer.from(text).toString()).toBe(text);
      const shuffled = { ...scan, paths: scan.paths.toReversed() };
      expect(renderSnapshot(shuffled, { counter, maxTokens }).text).toBe(text);
      const whole = renderSnapshot(scan, { counter, maxTokens: 1_000_000 });
      if (!truncated) expect(text).toBe(whole.text);
      expect(omitted > 0).toBe(truncated);
      const tree = treeOf(text);
      const told = tree.length > 0 ? tree : text.split("\n").filter((each) => marker.test(each));
      if (text !== "") expect(shownIn(told)).toBe(shownIn(treeOf(whole.text)));
    }),
    { numRuns },
  );
});

/** Entries that are shown or told to be left out. */
function shownIn(tree: readonly string[]): number {
  const omitted = marker.exec(tree.at(-1) ?? "")?.[1];
  return omitted === undefined ? tree.length : tree.length - 1 + Number(omitted);
}
