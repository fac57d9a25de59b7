import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { caseCount } from "../../../test/case-count.ts";
import { leastAllocation } from "../../core/budget/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import { createInputSchema, readArguments, type ToolResult } from "./budgeted-tool.ts";
import {
  bytesCounter,
  dataOf,
  itemsOf,
  listTool,
  openSession,
  quarterCounter,
  readOn,
} from "./sample-tool.contract.ts";

const numRuns = caseCount({ few: 8, deep: 250, long: 1_000 });
const timeout = 120_000;

/** A counter may return any number from 1 to the bytes. This one does not even grow with its text. */
const moodyCounter: Counter = {
  name: "moody",
  count: (text) => {
    const bytes = Buffer.byteLength(text);
    let hash = 7;
    for (let index = 0; index < text.length; index += 1) hash = (hash * 31 + text.charCodeAt(index)) >>> 0;
    return bytes === 0 ? 0 : Math.max(1, Math.ceil(bytes / 4) + (hash % Math.ceil(bytes / 2)));
  },
};
const counters = [bytesCounter, quarterCounter, moodyCounter, await createCounter("estimate:claude-5")];

const longString = fc
  .tuple(fc.string({ unit: "binary", minLength: 1, maxLength: 30 }), fc.nat(150))
  .map(([text, times]) => text.repeat(times));
const item = fc.oneof(
  { weight: 6, arbitrary: fc.record({ path: fc.string({ unit: "grapheme" }), size: fc.nat() }) },
  { weight: 2, arbitrary: fc.jsonValue() },
  { weight: 2, arbitrary: longString },
  { weight: 1, arbitrary: fc.record({ file: fc.string(), "a/~b": fc.record({ text: longString }) }) },
  { weight: 1, arbitrary: fc.array(longString, { maxLength: 8 }) },
  { weight: 1, arbitrary: fc.dictionary(fc.string({ maxLength: 200 }), fc.nat(), { maxKeys: 100 }) },
);
const results = fc.record({
  items: fc.array(item, { maxLength: 60 }),
  fields: fc.dictionary(fc.string(), fc.oneof(fc.jsonValue(), longString), { maxKeys: 5 }),
  itemsName: fc.constant("files"),
  warnings: fc.array(longString, { maxLength: 8 }),
  counter: fc.constantFrom(...counters),
  budget: fc.oneof(fc.constant(1), fc.integer({ min: leastAllocation, max: 9_000 })),
  isTotalKnown: fc.boolean(),
});

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("for any result and any counter,", () => {
  it("a tool's pages are within their allocation, and together they have all items", {
    timeout,
  }, async () => {
    const check = async ({ items, counter, budget, isTotalKnown, ...result }: Drawn) => {
      const tool = listTool(items, { ...result, total: isTotalKnown ? items.length : undefined });
      const session = await openSession({ counter, tools: [tool] });
      const first = await session.call("list", { budget });
      const joined = await readOn(session, first, { budget });
      expect(joined.items).toEqual(plain(items));
      for (const page of joined.pages) checkPage(page, counter, budget);
      if (dataOf(first).left_out !== undefined) expect(joined.fields).toEqual(plain(result.fields));
    };
    await fc.assert(fc.asyncProperty(results, check), { numRuns });
  });

  it("so are a stored result's pages, and left out fields can be read", {
    timeout,
  }, async () => {
    const check = async ({ items, counter, budget, fields, ...result }: Drawn) => {
      const session = await openSession({ counter });
      const given: ToolResult = { ...result, fields, items, offset: 0 };
      const first = await session.deliver(given, { tool: "elsewhere", args: {}, maxTokens: budget });
      const joined = await readOn(session, first, { budget });
      expect(joined.items).toEqual(plain(items));
      for (const page of joined.pages) checkPage(page, counter, budget);
      const { left_out } = dataOf(first);
      if (left_out === undefined) {
        for (const [name, value] of Object.entries(fields)) expect(dataOf(first)[name]).toEqual(plain(value));
      } else {
        const rest = await readOn(session, await session.nextPage(left_out.token, { maxTokens: budget }), {
          budget,
        });
        expect(rest.fields).toEqual(plain(fields));
        expect(joined.fields).toEqual(plain(fields));
      }
    };
    await fc.assert(fc.asyncProperty(results, check), { numRuns });
  });
});

type Drawn = typeof results extends fc.Arbitrary<infer Value> ? Value : never;

function checkPage(page: Awaited<ReturnType<Session["nextPage"]>>, counter: Counter, budget: number): void {
  expect(page.text).toBe(JSON.stringify(page.envelope));
  expect(page.tokens).toBe(counter.count(page.text));
  expect(page.tokens).toBeLessThanOrEqual(Math.max(leastAllocation, budget));
  const data = dataOf(page);
  expect(data.returned).toBe(itemsOf(data).length);
  expect(data.truncated).toBe(data.continuation_token !== undefined);
}

type Session = Awaited<ReturnType<typeof openSession>>;

const parameters = {
  path: { type: "string", description: "Where.", required: true },
  depth: { type: "integer", description: "How deep.", default: 5, minimum: 1 },
  hidden: { type: "boolean", description: "All.", default: false },
  note: { type: "string", description: "Any." },
} as const;

test("defaults replace parameters that are missing or null", () => {
  const expected = { values: { path: "src", depth: 5, hidden: false, note: undefined } };
  expect(readArguments(parameters, { path: "src" })).toEqual(expected);
  expect(readArguments(parameters, { path: "src", depth: null, hidden: null, note: null })).toEqual(expected);
});

test("numbers and booleans are accepted as strings", () => {
  expect(readArguments(parameters, { path: "src", depth: "12", hidden: "true" })).toMatchObject({
    values: { depth: 12, hidden: true },
  });
});

test.each([
  ["path is missing.", {}],
  ["path is missing.", { path: null }],
  ["path is empty.", { path: "" }],
  ["path is 5, but must be a string.", { path: 5 }],
  ["path contains a NUL byte.", { path: "a\0b" }],
  ["path has 200000 characters, more than 10000.", { path: "a".repeat(200_000) }],
  ["depth is 0, but must be a whole number from 1.", { path: "a", depth: 0 }],
  ["depth is 1.5, but must be a whole number from 1.", { path: "a", depth: 1.5 }],
  ['depth is "ten", but must be a whole number from 1.', { path: "a", depth: "ten" }],
  ["depth is 1152921504606847000, but must be a whole number from 1.", { path: "a", depth: 2 ** 60 }],
  ["hidden is 1, but must be true or false.", { path: "a", hidden: 1 }],
  ['Unknown parameter "detph". Did you mean "depth"?', { path: "a", detph: 1 }],
  ['Unknown parameter "toString".', { path: "a", toString: 1 }],
])("refuses wrong arguments: %s", (message, args) => {
  expect(readArguments(parameters, args)).toMatchObject({ failure: { code: "invalid_argument", message } });
});

test("the schema says what is required, but not how arguments are checked", () => {
  expect(createInputSchema(parameters)).toEqual({
    type: "object",
    properties: {
      path: { type: "string", description: "Where." },
      depth: { type: "integer", description: "How deep.", default: 5, minimum: 1 },
      hidden: { type: "boolean", description: "All.", default: false },
      note: { type: "string", description: "Any." },
    },
    required: ["path"],
    additionalProperties: false,
  });
});
