import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { loadPackSchemas } from "../../rules/packs/index.ts";
import { companyConfigSchema, configSchema } from "./config-file.ts";
import { acceptShape, readKnownShape, readPlainYaml, type ShapeName } from "./known-shape.ts";
import { readYaml } from "./read-yaml.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 200;

const { packSchemas } = await loadPackSchemas();
const schemas: Readonly<Record<ShapeName, z.ZodType>> = {
  config: configSchema,
  company: companyConfigSchema,
  pack: packSchemas.pack!,
  samples: packSchemas.samples!,
  "known-errors": packSchemas["known-errors"]!,
  learning: packSchemas.learning!,
  profile: packSchemas.profile!,
};

describe.each(Object.keys(schemas) as ShapeName[])("the JSON Schema of %s", (name) => {
  test("accepts the values that zod accepts, and gives the same data in the same order", () => {
    fc.assert(
      fc.property(valuesOf(schemas[name]), (value) => {
        const { success, data } = schemas[name].safeParse(value);
        expect(JSON.stringify(acceptShape(value, name))).toBe(success ? JSON.stringify(data) : undefined);
      }),
      { numRuns },
    );
  });
});

test("most generated values are valid, and many are not", () => {
  const values = fc.sample(valuesOf(configSchema), { numRuns: 500, seed: 1 });
  const valid = values.filter((value) => configSchema.safeParse(value).success).length;
  expect(valid).toBeGreaterThan(100);
  expect(valid).toBeLessThan(400);
});

test("leaves a name that zod drops to zod", () => {
  const input = JSON.parse('{"budgets":{"__proto__":100}}');
  expect(acceptShape(input, "config")).toBeUndefined();
});

describe("plain YAML", () => {
  test("reads what init writes, without the library", () => {
    const read = readPlainYaml(
      '# → a comment\nmodel: claude-sonnet-5   # why\ntools: [claude-code, cursor]\nbudgets: { "*": 4000, cursor: { max_bytes: 9 } }\ncontext:\n  max_tokens: 10\n  shares: { project: 0.4 }\ndeny:\n- "*.pem"\n- keys\n',
    );
    expect(read?.input).toEqual({
      model: "claude-sonnet-5",
      tools: ["claude-code", "cursor"],
      budgets: { "*": 4000, cursor: { max_bytes: 9 } },
      context: { max_tokens: 10, shares: { project: 0.4 } },
      deny: ["*.pem", "keys"],
    });
    expect(read?.lineOf(["context", "shares", "project"])).toBe(7);
    expect(read?.lineOf(["deny", 1])).toBe(10);
    expect(read?.lineOf(["deny", "2", "x"])).toBe(8);
  });

  test.each([
    "a: &x 1",
    "a: *x",
    "a: |\n  text",
    "a: b\n  c",
    "a: b: c",
    "a: 'it''s'",
    'a: "\\n"',
    "a: 1\na: 2",
    "a: !!str 1",
    "a: 012",
    "a: 1e3",
    "a: Null",
    "a: [b, ]",
    "- a",
    "a:\n  b: 1\n c: 2",
    "---\na: 1",
    "a: b\n...",
    "a: b\r\n",
    "a:\t1",
    "",
  ])("leaves %j to the library", (text) => {
    expect(readPlainYaml(text)).toBeUndefined();
  });

  test("has the data and the lines that the library has", () => {
    let plain = 0;
    fc.assert(
      fc.property(yamlText, (text) => {
        const quick = readPlainYaml(text);
        if (quick === undefined) return;
        plain++;
        const { input, problems, lineOf } = readYaml(text);
        expect({ problems, input: JSON.stringify(quick.input) }).toEqual({
          problems: [],
          input: JSON.stringify(input),
        });
        for (const path of pathsOf(input)) expect([path, quick.lineOf(path)]).toEqual([path, lineOf(path)]);
      }),
      { numRuns: numRuns * 4 },
    );
    expect(plain).toBeGreaterThan(numRuns / 4);
  });
});

test("a file that needs the library needs no zod, and a file with a mistake is not accepted", async () => {
  const folded = await readKnownShape("title: >\n  Two\n  words\nmodel: x\n", "config");
  expect(folded?.value).toEqual({ model: "x", title: "Two words\n" });
  expect(folded?.lineOf(["model"])).toBe(4);
  expect(await readKnownShape("title: [\n", "config")).toBeUndefined();
  expect(await readKnownShape("titel: x\n", "config")).toBeUndefined();
});

/** Returns values of a zod schema, some of them with a mistake. */
function valuesOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const odd = fc.constantFrom(null, "", " ", "a", "true", true, 0, -1, 1.5, 1e20, Number.NaN, [], {}, [null], { a: 1 });
  return fc.oneof({ weight: 30, arbitrary: plainValuesOf(schema) }, { weight: 1, arbitrary: odd });
}

function plainValuesOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const definition = schema._zod.def as unknown as Definition;
  switch (definition.type) {
    case "optional":
      return valuesOf(definition.innerType);
    case "string":
      return fc.constantFrom("a", "a-b.c", "src/**/*.ts", "30d", "x y", "ä", "", "../x", "🙂", "a\u2028b", "9w");
    case "number":
      return fc.constantFrom(0, 1, 0.5, 512, 100_000, -3, 2 ** 53, -0, 1.25);
    case "boolean":
      return fc.boolean();
    case "enum":
      return fc.constantFrom(...Object.values(definition.entries));
    case "array":
      return fc.array(valuesOf(definition.element), { maxLength: 3 });
    case "union":
      return fc.oneof(...definition.options.map(valuesOf));
    case "record":
      return fc.dictionary(fc.constantFrom("*", "a", "gpt-5.2", "constructor"), valuesOf(definition.valueType), {
        maxKeys: 3,
      });
    default:
      return objectOf(definition.shape);
  }
}

interface Definition {
  readonly type: string;
  readonly innerType: z.ZodType;
  readonly element: z.ZodType;
  readonly valueType: z.ZodType;
  readonly options: readonly z.ZodType[];
  readonly entries: Readonly<Record<string, string>>;
  readonly shape: Readonly<Record<string, z.ZodType>>;
}

/** Has few of the keys, in any order, and sometimes a key that the schema does not have. */
function objectOf(shape: Definition["shape"]): fc.Arbitrary<unknown> {
  const member = (key: string) => valuesOf(shape[key]!).map((value) => [key, value] as const);
  const required = Object.keys(shape).filter((key) => !shape[key]!.safeParse(undefined).success);
  const extra = fc.constantFrom(["titel", 1] as const, ["toString", "x"] as const);
  return fc
    .tuple(
      fc.oneof({ weight: 20, arbitrary: fc.tuple(...required.map(member)) }, { weight: 1, arbitrary: fc.constant([]) }),
      fc
        .subarray(Object.keys(shape), { maxLength: Math.min(4, Object.keys(shape).length) })
        .chain((keys) => fc.tuple(...keys.map(member))),
      fc.oneof({ weight: 20, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.tuple(extra) }),
    )
    .chain(([...lists]) => fc.shuffledSubarray(lists.flat(), { minLength: lists.flat().length }))
    .map((entries) => Object.fromEntries(entries));
}

const word = fc.constantFrom(
  "a",
  "b",
  "claude-code",
  "true",
  "no",
  "null",
  "1",
  "0.40",
  "007",
  "1.",
  "x.y",
  '"*"',
  "'q'",
);
const spaces = fc.constantFrom(" ", "  ", "");
const flowText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
    fc
      .array(fc.tuple(word, tie("value")), { maxLength: 3 })
      .map((pairs) => `{ ${pairs.map(([key, value]) => `${key}: ${value}`).join(", ")} }`),
  ),
})).value;
const lineText = fc
  .tuple(
    fc.constantFrom("", "", "", "  ", "  ", "    ", " "),
    fc.constantFrom("", "", "", "- ", "# "),
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc
          .tuple(word, spaces, fc.oneof(flowText, fc.constant("")))
          .map(([key, gap, value]) => `${key}:${gap}${value}`),
      },
      flowText,
      fc.constantFrom("two words, and [more]", "a #b", "x: y: z", "it's", "", "---", "<<: { a: 1 }", "c: ü → #1"),
    ),
    fc.constantFrom("", "", "", " # why", "#no", "  "),
  )
  .map((parts) => parts.join(""));
/** Lines of which some make plain YAML, some YAML of other kinds, and some no YAML at all. */
const yamlText = fc.oneof(
  fc.array(lineText, { minLength: 1, maxLength: 6 }).map((lines) => lines.join("\n")),
  fc
    .uniqueArray(fc.tuple(fc.constantFrom("a", "b", "c", "d.e", '"*"'), fc.oneof(flowText, blockText())), {
      selector: ([key]) => key,
      minLength: 1,
      maxLength: 4,
    })
    .map((pairs) => `${pairs.map(([key, value]) => `${key}: ${value}`).join("\n")}\n`),
);

function blockText(): fc.Arbitrary<string> {
  const list = fc
    .array(flowText, { minLength: 1, maxLength: 3 })
    .chain((items) => fc.constantFrom("", "  ").map((indent) => items.map((item) => `\n${indent}- ${item}`).join("")));
  const map = fc.tuple(flowText, flowText).map(([first, second]) => `\n  x: ${first} # why\n\n  y: ${second}`);
  return fc.oneof(list, map);
}

function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  const below = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return [path, [...path, "absent"], ...below.flatMap(([key, child]) => pathsOf(child, [...path, key]))];
}
