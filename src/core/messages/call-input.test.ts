import { describe, expect, test } from "vitest";
import { filesOf, inputOf, textsOf } from "./call-input.ts";

const call = (args: unknown, toolName = "run") => ({
  pieces: [{ kind: "tool_call" as const, name: toolName, args, path: "" }],
  toolName,
});

describe("the files of a call", () => {
  test.each([
    ["a path", call({ file_path: "src/a.ts" }), { path: "src/a.ts", edited: [], replaced: [] }],
    ["a text to replace", call({ path: "a", old_str: "x" }), { path: "a", edited: ["a"], replaced: ["x"] }],
    ["a tool that writes", call({ path: "a", content: "x" }, "write_file"), { path: "a", edited: ["a"], replaced: [] }],
    [
      "a list of edits as JSON text",
      call('{"filePath":"a","edits":[{"oldText":"x"},{"oldText":"y"},null]}'),
      { path: "a", edited: ["a"], replaced: ["x", "y"] },
    ],
    [
      "a patch",
      call("*** Begin Patch\n*** Update File: a.ts\n@@\n*** Add File: b.ts\n", "apply_patch"),
      { edited: ["a.ts", "b.ts"], replaced: [] },
    ],
    ["nothing", call({ flags: [1], path: 7 }), { edited: [], replaced: [] }],
    ["arguments that are not JSON", call("{oops"), { edited: [], replaced: [] }],
  ])("are read from %s", (_name, part, files) => {
    expect(filesOf(part)).toEqual({ path: undefined, ...files });
  });

  test("are none for a text", () => {
    const part = { pieces: [{ kind: "text" as const, text: "*** Update File: a.ts" }] };
    expect([filesOf(part), inputOf(part), textsOf(part)]).toEqual([
      { edited: [], replaced: [] },
      undefined,
      ["*** Update File: a.ts"],
    ]);
  });
});
