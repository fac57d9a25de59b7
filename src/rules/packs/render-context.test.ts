import { expect, test } from "vitest";
import type { Verbosity } from "../../core/text/index.ts";
import { mergeLayers } from "./merge-packs.ts";
import { orderPacks, type Pack } from "./pack.ts";
import { createPackSource, type PackFile, type PackFolder } from "./read-pack.ts";
import { type RenderOptions, renderContext } from "./render-context.ts";

function pack(file: PackFile, folder: Partial<PackFolder> = {}): Pack {
  const source = createPackSource({ texts: {}, directory: "", ...folder, pack: file });
  return mergeLayers([{ layer: "embedded", sources: [source] }], { language: "en" }).packs[0]!;
}

const options: RenderOptions = { title: "Developer Context", verbosity: "full" };
const header = "# Developer Context\n\nMaintained by plimsoll. Edit the packs, not this block.\n\n";

const shop = pack(
  {
    id: "shop",
    name: "Shop",
    weight: 10,
    changelog: ["Carts expire.", "Prices are in cents.", "New API.", "Ancient."],
  },
  {
    texts: {
      "context.md":
        "\n## Shop\n\nSells.\n\n<!-- verbosity:detail -->\n### Carts\n\nExpire.\n\n<!-- verbosity:extended -->\n### Past\n\nLong.\n",
      "constraints.md": "- Never round.\n\n<!-- verbosity:detail -->\n- Never guess a currency.\n",
    },
    samples: [
      {
        id: "shop/cart",
        label: "Cart | basket",
        url: "https://example.com/cart",
        description: "Adds\nitems",
        inject: true,
      },
      { id: "shop/old", label: "Old cart", url: "https://example.com/old" },
    ],
    knownErrors: [
      {
        id: "shop/e",
        pattern: "a|b \\| c",
        cause: "Two carts",
        fix: "Merge them",
        docs: "https://example.com/e",
      },
      { id: "shop/f", pattern: "E2", cause: "None", fix: "Wait" },
    ],
    learning: {
      journeys: [
        {
          slug: "carts",
          title: "Carts [new]",
          url: "https://example.com/l",
          level: "beginner",
          hours: 1.5,
          featured: true,
        },
        { slug: "hidden", title: "Hidden", url: "https://example.com/h" },
        { slug: "selling-online", featured: true },
        { slug: "offline", title: "Offline [1]", featured: true },
      ],
    },
  },
);
const base = pack(
  { id: "base", base: true, changelog: ["Rules moved."] },
  {
    texts: {
      "context.md": "## Here\n\nRead first.\n",
      "constraints.md": "- Never invent.\n",
      "preamble.md": "> Ask before you delete.\n",
    },
  },
);
const packs = orderPacks([shop, base]);
const whole: Omit<RenderOptions, "verbosity"> = {
  title: "Developer Context",
  profile: { id: "seller", name: "Seller", description: "Who sells", packs: [] },
  notes: ["Release on Friday.\nFreeze on Thursday."],
  facts: [
    { name: "Language", value: "TypeScript" },
    { name: "Test command", value: "npm test" },
  ],
};

test.each<Verbosity>(["minimal", "standard", "full"])("the whole block at %s", async (verbosity) => {
  await expect(renderContext(packs, { ...whole, verbosity })).toMatchFileSnapshot(
    `../../../test/golden/context-${verbosity}.md`,
  );
});

test("one pack alone is the header and its text", () => {
  const cap = pack({ id: "cap" }, { texts: { "context.md": "## CAP\n\nUse @sap/cds." } });
  expect(renderContext([cap], options)).toBe(`${header}## CAP\n\nUse @sap/cds.\n`);
});

test("without packs there is only the header, and a pack without text adds nothing", () => {
  expect(renderContext([], options)).toBe(`${header.trimEnd()}\n`);
  expect(renderContext([pack({ id: "a" }, { texts: { "context.md": "\n \n" } })], options)).toBe(
    `${header.trimEnd()}\n`,
  );
});

test("minimal has no tables, standard only the patterns", () => {
  const headings = (verbosity: Verbosity) =>
    ["Canonical Patterns", "Recommended Learning", "Known Errors"].filter((each) =>
      renderContext(packs, { ...options, verbosity }).includes(`## ${each}\n`),
    );
  expect(headings("minimal")).toEqual([]);
  expect(headings("standard")).toEqual(["Canonical Patterns"]);
  expect(headings("full")).toEqual(["Canonical Patterns", "Recommended Learning", "Known Errors"]);
});

test("thins a single pack with its rows in the tables", () => {
  const text = renderContext(packs, {
    ...options,
    verbosityOf: ({ id }) => (id === "shop" ? "minimal" : "full"),
  });
  expect(text).toContain("Read first.");
  expect(text).toContain("Sells.");
  for (const gone of ["Expire.", "currency", "Canonical Patterns", "Known Errors"]) expect(text).not.toContain(gone);
});

test("a note is one line of at most 500 bytes, cut between characters", () => {
  const line = (note: string) => /^- (.*)$/m.exec(renderContext([], { ...options, notes: [note] }))?.[1];
  expect(line("x".repeat(500))).toBe("x".repeat(500));
  expect(line("x".repeat(600))).toBe(`${"x".repeat(500)}...`);
  expect(line("é".repeat(251))).toBe(`${"é".repeat(250)}...`);
  expect(line(`${"x".repeat(498)}😀`)).toBe(`${"x".repeat(498)}...`);
  expect(line("two\r\nlines")).toBe("two lines");
  expect(renderContext([], { ...options, notes: [" \n"] })).not.toContain("Current Context");
});

test("a note or a fact cannot open a code block that hides the rest", () => {
  const text = renderContext([base], {
    ...options,
    notes: ["```js", "- ~~~"],
    facts: [{ name: "```", value: "x" }],
  });
  expect(text).toContain("- \\```js\n- - \\~~~\n");
  expect(text).toContain("- \\```: x\n");
});

test("the runtime context names the included packs, and is absent without facts", () => {
  expect(renderContext(packs, { ...options, facts: [] })).toContain("## Runtime Context\n\n- Packs: base, shop\n");
  expect(renderContext(packs, options)).not.toContain("Runtime Context");
});

test("title and profile are one line each", () => {
  const profile = { id: "p", name: "P\nQ", description: "", packs: [] };
  const text = renderContext([], { ...options, title: "A\n# B", profile });
  expect(text.split("\n")).toEqual(expect.arrayContaining(["# A # B", "**Profile:** P Q"]));
});

test("500 packs of 20 KB render in well under 100 ms", { tags: ["perf"] }, () => {
  const text =
    `## Title\n\n${"A line of some length that says something.\n".repeat(155)}<!-- verbosity:detail -->\n`.repeat(3);
  const sources = Array.from({ length: 500 }, (_, index) =>
    createPackSource({ pack: { id: `p${index}` }, texts: { "context.md": text }, directory: "" }),
  );
  const merged = mergeLayers([{ layer: "embedded", sources }], { language: "en" }).packs;
  let leastMs = Number.POSITIVE_INFINITY;
  // Repeat until it holds: other tests use the processor too.
  for (let round = 0; round < 50 && leastMs >= 100; round++) {
    const start = performance.now();
    const { length } = renderContext(merged, options);
    leastMs = Math.min(leastMs, performance.now() - start);
    expect(length).toBeGreaterThan(9_000_000);
  }
  expect(leastMs).toBeLessThan(100);
});

test.each([
  ["a heading at the end", "## A\n\nText.\n\n### B\n", "## A\n\nText."],
  ["a heading before another one of its level", "## A\n\n### B\n\n### C\n\nText.\n", "## A\n\n### C\n\nText."],
  ["headings inside each other", "## A\n\n### B\n\n#### C\n\n## D\nText.\n", "## D\nText."],
  ["a heading above a comment alone", "## A\n\nText.\n\n### B\n\n<!-- c -->\n", "## A\n\nText.\n\n<!-- c -->"],
])("leaves out %s", (_, context, expected) => {
  expect(renderContext([pack({ id: "a" }, { texts: { "context.md": context } })], options)).toBe(
    `${header}${expected}\n`,
  );
});

test.each([
  "## A\n\n### B\n\nText.",
  "## A\n\n```sh\n# a comment\n## another\n```",
  "## A\n\n| a |\n| - |",
  "## A\n#hashtag",
])("keeps the headings of %j", (context) => {
  expect(renderContext([pack({ id: "a" }, { texts: { "context.md": context } })], options)).toBe(
    `${header}${context}\n`,
  );
});

test("leaves out a heading whose text is in a tier that is not shown", () => {
  const context = "## A\n\nText.\n\n### B\n\n<!-- verbosity:detail -->\nDetail.\n";
  const given = [pack({ id: "a" }, { texts: { "context.md": context, "constraints.md": "### Only a heading\n" } })];
  expect(renderContext(given, { ...options, verbosity: "minimal" })).toBe(`${header}## A\n\nText.\n`);
  expect(renderContext(given, options)).toBe(`${header}## A\n\nText.\n\n### B\n\nDetail.\n`);
});
