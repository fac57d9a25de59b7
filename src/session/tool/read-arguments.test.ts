import { expect, test } from "vitest";
import { inputSchemaOf, readArguments } from "./read-arguments.ts";

const parameters = {
  path: { type: "string", description: "Where.", required: true },
  depth: { type: "integer", description: "How deep.", default: 5, minimum: 1 },
  hidden: { type: "boolean", description: "All.", default: false },
  note: { type: "string", description: "Any." },
} as const;

test("defaults stand for what is left out or null", () => {
  const expected = { values: { path: "src", depth: 5, hidden: false, note: undefined } };
  expect(readArguments(parameters, { path: "src" })).toEqual(expected);
  expect(readArguments(parameters, { path: "src", depth: null, hidden: null, note: null })).toEqual(expected);
});

test("numbers and booleans that come as strings are taken for what they say", () => {
  expect(readArguments(parameters, { path: "src", depth: "12", hidden: "true" })).toMatchObject({
    values: { depth: 12, hidden: true },
  });
});

test.each([
  [{}, "path is missing."],
  [{ path: null }, "path is missing."],
  [{ path: "" }, "path is empty."],
  [{ path: 5 }, "path is 5, and must be a string."],
  [{ path: "a\0b" }, "path holds a NUL byte."],
  [{ path: "a".repeat(200_000) }, "path has 200000 characters, and 10000 are the most."],
  [{ path: "a", depth: 0 }, "depth is 0, and must be a whole number from 1."],
  [{ path: "a", depth: 1.5 }, "depth is 1.5, and must be a whole number from 1."],
  [{ path: "a", depth: "ten" }, 'depth is "ten", and must be a whole number from 1.'],
  [{ path: "a", depth: 2 ** 60 }, "depth is 1152921504606847000, and must be a whole number from 1."],
  [{ path: "a", hidden: 1 }, "hidden is 1, and must be true or false."],
  [{ path: "a", detph: 1 }, 'Unknown parameter "detph". Did you mean "depth"?'],
  [{ path: "a", toString: 1 }, 'Unknown parameter "toString".'],
])("%j is refused: %s", (args, message) => {
  expect(readArguments(parameters, args)).toMatchObject({ failure: { code: "invalid_argument", message } });
});

test("the schema says what is required and nothing of how we check", () => {
  expect(inputSchemaOf(parameters)).toEqual({
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
