import { expect, test } from "vitest";
import { parseConfigKey } from "./config-key.ts";

test.each([
  ["mcpServers", ["mcpServers"]],
  ["a.b", ["a", "b"]],
  [' a . "b c" ', ["a", "b c"]],
  ['"amp.mcpServers"', ["amp.mcpServers"]],
  ["'a.b'.\"\\u0063\"", ["a.b", "c"]],
  ['"\\U00000041"', ["\\U00000041"]],
])("the names of %s", (text, names) => {
  expect(parseConfigKey(text)).toEqual(names);
});

test.each(["", ".", "a.", "a b", "[a]", '"a'])("%j is no key", (text) => {
  expect(parseConfigKey(text)).toBeUndefined();
});
