import { expect, test } from "vitest";
import { closeFence, withoutBareFence } from "./close-fence.ts";

test("a fence that is left open is closed in the column of its opener, by as many marks", () => {
  expect(closeFence("a\n```js\ncode\n")).toBe("a\n```js\ncode\n```");
  expect(closeFence("a\n```js\ncode")).toBe("a\n```js\ncode\n```");
  expect(closeFence("- ~~~~\n  ```\n")).toBe("- ~~~~\n  ```\n  ~~~~");
});

test("a fence is closed in its list item and its quote", () => {
  expect(closeFence("> ```\n> a")).toBe("> ```\n> a\n> ```");
  expect(closeFence("- a\n  >1.  ~~~\n")).toBe("- a\n  >1.  ~~~\n  >     ~~~");
  expect(closeFence("10.\t ```\n")).toBe("10.\t ```\n     ```");
});

test("a fence that ended with its list item or quote is not closed again", () => {
  for (const text of ["- ```sh\n  x\n\nb\n", "- ```\n- b", "> ```\n> x\n\nb", "a\n\n    ```\n"])
    expect(closeFence(text)).toBe(text);
});

test("a text without an open fence is the same", () => {
  for (const text of ["", "plain", "```\ncode\n```\n", "a ``` b", "<!--\n```\n-->\n"])
    expect(closeFence(text)).toBe(text);
});

test("an open fence with no code behind it is left out, one with code is not", () => {
  expect(withoutBareFence("a\n\n```js\n \n")).toBe("a");
  expect(withoutBareFence("```")).toBe("");
  expect(withoutBareFence("a\n```js\ncode")).toBe("a\n```js\ncode");
  expect(withoutBareFence("a\n```\n```\n")).toBe("a\n```\n```\n");
});
