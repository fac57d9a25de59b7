import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { packFileSchema, packSchemas } from "./schema.ts";

test.each(Object.entries(packSchemas))(
  "the committed schemas/%s.schema.json is the one the code makes (npm run schemas)",
  (name, schema) => {
    const committed = readFileSync(new URL(`../../../schemas/${name}.schema.json`, import.meta.url), "utf8");
    expect(committed).toBe(`${JSON.stringify(z.toJSONSchema(schema, { io: "input" }), null, 2)}\n`);
  },
);

test.each(Object.entries(packSchemas))("every key of %s is described", (_, schema) => {
  expect(undescribed(z.toJSONSchema(schema, { io: "input" }))).toEqual([]);
});

test("overlaps are described in the right direction", () => {
  const { properties } = z.toJSONSchema(packFileSchema, { io: "input" });
  expect(properties?.overlaps).toMatchObject({
    description: expect.stringContaining("packs that include this one"),
  });
});

/** Keys whose description is missing or has no full stop. */
function undescribed(schema: unknown, path = ""): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items, additionalProperties } = schema as Record<string, Record<string, object>>;
  const own = Object.entries(properties).flatMap(([key, value]) => [
    ...(/\.$/.test((value as { description?: string }).description ?? "") ? [] : [`${path}.${key}`]),
    ...undescribed(value, `${path}.${key}`),
  ]);
  return [...own, ...undescribed(items, path), ...undescribed(additionalProperties, path)];
}
