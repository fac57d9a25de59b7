import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { counterNames } from "../../tokens/index.ts";
import { defaultConfig } from "./config.ts";
import { configJsonSchema, configSchema } from "./config-schema.ts";

test("the committed JSON Schema is the one the code makes (after a build: node scripts/write-schemas.mjs)", () => {
  const committed = readFileSync(new URL("../../../schemas/config.schema.json", import.meta.url), "utf8");
  expect(committed).toBe(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
});

test("the schema knows exactly the keys that have a place in the defaults", () => {
  const { properties } = configJsonSchema();
  expect(Object.keys(properties ?? {})).toEqual(Object.keys(defaultConfig));
  for (const key of ["context", "session", "history"] as const) {
    expect(Object.keys(properties?.[key]?.properties ?? {})).toEqual(Object.keys(defaultConfig[key]));
  }
});

test("every key is described, and no others are allowed", () => {
  const schema = configJsonSchema();
  expect(schema.additionalProperties).toBe(false);
  for (const [key, value] of Object.entries(schema.properties ?? {})) {
    expect(value.description, key).toMatch(/\.$/);
  }
  expect(schema.properties?.counter?.enum).toEqual(counterNames);
});

test("the defaults are themselves valid", () => {
  expect(configSchema.safeParse(defaultConfig).error).toBeUndefined();
});
