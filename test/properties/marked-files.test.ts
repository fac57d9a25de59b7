/** Whatever a person's file holds: a block put twice is put once, removed it leaves no trace, and tiers lose no text. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseSegments, textAt, toByteString } from "../../src/core/text/index.ts";
import { markedBlock, readOwnership, renderOwnedFile } from "../../src/rules/files/marked-block.ts";
import { toPlainProse } from "../../src/rules/files/plain-prose.ts";
import { caseCount } from "../case-count.ts";

const numRuns = caseCount({ few: 200, deep: 10_000, long: 50_000 });
const check = <T>(property: fc.IProperty<T>) => fc.assert(property, { numRuns });

/** Few pieces that mean something to the scanner, so that they meet. */
const piece = fc.oneof(
  fc.constantFrom(
    ...[
      "```",
      "~~~",
      "````",
      "```js",
      "- ```",
      "    ```",
      "  ```",
      "- a",
      "x",
      "",
      "<!--",
      "-->",
      "\r",
      "\xef\xbb\xbf",
      "---",
    ],
    ...[
      "<!-- verbosity:detail -->",
      "<!-- verbosity:core -->",
      " <!-- verbosity:extended -->",
      "> <!-- verbosity:detail -->",
    ],
    ...["<!-- plimsoll:start:other -->", "<!-- plimsoll:end:other -->"],
    ...["<!-- plimsoll:start:context -->", "<!-- plimsoll:end:context -->"],
  ),
  fc.string({ unit: "binary-ascii", maxLength: 6 }),
);
const lineEnd = fc.constantFrom("\n", "\n", "\r\n", "\r", "");
const text = fc
  .array(fc.tuple(piece, lineEnd), { maxLength: 12 })
  .map((lines) => lines.map((line) => line.join("")).join(""));
const bytes = fc.oneof(
  text,
  fc.uint8Array({ maxLength: 40 }).map((each) => Buffer.from(each).toString("latin1")),
);
const file = fc.option(bytes, { nil: undefined });
const kindOf = (current: string | undefined) => markedBlock.find(current ?? "", "context").kind;

test("a block that is put and removed leaves the file as it was", () => {
  check(
    fc.property(file, text, (before, body) => {
      fc.pre(kindOf(before) === "none");
      expect(markedBlock.remove(markedBlock.put(before, "context", body), "context").file).toBe(before);
    }),
  );
});

test("a block put twice is put once, and is found unedited", () => {
  check(
    fc.property(file, text, (before, body) => {
      fc.pre(kindOf(before) !== "broken");
      const once = markedBlock.put(before, "context", body);
      expect(markedBlock.put(once, "context", body)).toBe(once);
      expect(markedBlock.find(once, "context")).toMatchObject({ kind: "block", block: { edited: false } });
    }),
  );
});

test("a new body leaves every byte outside the block where it was", () => {
  check(
    fc.property(file, text, text, (before, first, second) => {
      fc.pre(kindOf(before) === "none");
      const [one, two] = [first, second].map((body) => {
        const found = markedBlock.put(before, "context", body);
        const search = markedBlock.find(found, "context");
        if (search.kind !== "block") throw new Error(search.kind);
        return { found, before: found.slice(0, search.block.start), after: found.slice(search.block.end) };
      });
      expect({ before: two!.before, after: two!.after }).toEqual({ before: one!.before, after: one!.after });
      expect(markedBlock.put(one!.found, "context", second)).toBe(two!.found);
    }),
  );
});

test("two sections go in either order", () => {
  check(
    fc.property(file, text, text, fc.boolean(), (before, first, second, swap) => {
      fc.pre(kindOf(before) === "none");
      const both = markedBlock.put(markedBlock.put(before, "context", first), "two", second);
      const order = swap ? ["context", "two"] : ["two", "context"];
      const rest = order.reduce<string | undefined>(
        (current, section) => markedBlock.remove(current!, section).file,
        both,
      );
      expect(rest).toBe(before);
    }),
  );
});

test("a file of ours is ours, and any change of its text is seen", () => {
  check(
    fc.property(fc.constantFrom("", "---\na: b\n---\n", "Intro\n"), fc.string(), fc.nat(), (preamble, body, place) => {
      const written = renderOwnedFile({ preamble, body: toByteString(body) });
      expect(readOwnership(written)).toEqual({ kind: "ours", edited: false });
      const at = place % written.length;
      const changed = `${written.slice(0, at)}#${written.slice(at)}`;
      expect(readOwnership(changed)).not.toEqual({ kind: "ours", edited: false });
    }),
  );
});

test("the tiers together are the file without its marker lines, in its order", () => {
  check(
    fc.property(text, (markdown) => {
      const { segments } = parseSegments(markdown);
      const full = textAt(segments, "full");
      if (!markdown.includes("verbosity:")) expect(full).toBe(markdown);
      expect(isSubsequence(full, markdown)).toBe(true);
      expect(isSubsequence(textAt(segments, "minimal"), textAt(segments, "standard"))).toBe(true);
      for (const [index, { tier }] of segments.entries()) expect(segments[index + 1]?.tier).not.toBe(tier);
    }),
  );
});

test("plain prose only takes away, and what has no marks comes through", () => {
  check(
    fc.property(text, (markdown) => {
      expect(isSubsequence(toPlainProse(markdown), markdown)).toBe(true);
    }),
  );
  check(
    fc.property(fc.array(fc.stringMatching(/^[a-z ,.]{1,20}$/), { maxLength: 8 }), (lines) => {
      const plain = lines.join("\n");
      expect(toPlainProse(plain)).toBe(plain);
    }),
  );
});

function isSubsequence(part: string, whole: string): boolean {
  let at = 0;
  for (const character of whole) if (character === part[at]) at++;
  return at === part.length;
}
