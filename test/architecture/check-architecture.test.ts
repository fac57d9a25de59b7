/** Each rule against a small tree that breaks it, so that no rule can pass by not looking. */
import { posix } from "node:path";
import { expect, test } from "vitest";
import { checkArchitecture, createProject, type Manifest } from "./check-architecture.ts";
import { parts, roomGroups } from "./layers.ts";
import { idleReaders } from "./reads.ts";

const manifest: Manifest = {
  name: "plimsoll",
  exports: {
    ".": "./dist/public/index.js",
    "./schemas/*": "./schemas/*",
  },
  dependencies: { "gpt-tokenizer": "", libsql: "", zod: "", commander: "" },
};

/** A tree in order, with some of everything that is allowed. */
const tree: Readonly<Record<string, string>> = {
  "src/core/errors.ts": "export class ContextError extends Error {}",
  "src/public/index.ts": 'export { count } from "../core/tokens/index.ts";',
  "src/core/tokens/index.ts": 'export { count } from "./count.ts";',
  "src/core/tokens/count.ts": `import { ContextError } from "../errors.ts";
    export const count = async () => import("./exact.ts");
    export const failure = new ContextError();`,
  "src/core/tokens/exact.ts": 'export const load = () => import("./o200k.ts");',
  "src/core/tokens/o200k.ts": 'import x from "gpt-tokenizer/bpeRanks/o200k_base"; export const tokens = x;',
  "src/core/store/index.ts": "export const memory = 1;",
  "src/host/store/sqlite.ts": `import { readFileSync } from "node:fs";
    import type Libsql from "libsql";
    export type Options = { now: number };
    export const open = () => [readFileSync, Date.now(), process.pid] as unknown as Libsql.Database;`,
  "src/core/text/index.ts": `import { z } from "zod";
    // process.env and Date.now() in a comment are no use of them; "Math.random()" in a string is none either
    export const text = z.literal("Math.random()");
    export const moment = (date: Date, step: { fetch: number }) => new Date(date.getTime() + step.fetch);
    export const least = (a: unknown) => (a instanceof Date ? Math.min(1, Date.UTC(2020, 1), Date.parse("x")) : 0);`,
  "src/core/text/text.test.ts": 'import { readFileSync } from "node:fs"; console.log(readFileSync, Date.now());',
  "src/host/index.ts": `import { open } from "./store/sqlite.ts";
    import { cwd } from "node:process";
    export const workspace = [open, cwd, Date.now(), Math.random()];`,
  "src/cli/main.ts": 'export const run = () => import("./commands/count.ts");',
  "src/cli/commands/count.ts": 'import { Command } from "commander"; export const command = new Command();',
};

function problemsWith(changes: Readonly<Record<string, string>>, other: Partial<Manifest> = {}): string[] {
  return checkArchitecture(createProject({ ...tree, ...changes }, { ...manifest, ...other }));
}

test("a tree in order has no problems", () => {
  expect(problemsWith({})).toEqual([]);
});

test.each([
  ["a static import", 'import { workspace } from "../../host/index.ts"; export const x = workspace;'],
  ["a type", 'import type { W } from "../../host/index.ts"; export type X = W;'],
  ["a type in place", 'export type X = import("../../host/index.ts").W;'],
  ["an export", 'export { workspace } from "../../host/index.ts";'],
  ["import()", 'export const x = () => import("../../host/index.ts");'],
])("a room above is out of reach by %s", (_, text) => {
  expect(problemsWith({ "src/core/text/upward.ts": text })).toEqual([
    "src/core/text/upward.ts:1 → ../../host/index.ts → breaks the order: host lies above core.",
  ]);
});

test("every room sees those below it, none above it, and no sibling", () => {
  const rooms = roomGroups.flat();
  const groupOf = (room: string) => roomGroups.findIndex((group) => group.includes(room));
  const doors = Object.fromEntries(rooms.map((room) => [`src/${room}/index.ts`, "export const x = 1;"]));
  for (const from of rooms) {
    for (const to of rooms) {
      const importing = { [`src/${from}/y.ts`]: `import { x } from "../${to}/index.ts"; export const y = x;` };
      const allowed = from === to || groupOf(to) < groupOf(from);
      const problems = checkArchitecture(createProject({ ...doors, ...importing }, manifest));
      expect(problems, `${from} → ${to}`).toHaveLength(allowed ? 0 : 1);
    }
  }
  expect(rooms.length).toBeLessThanOrEqual(11);
});

test("every part of a room sees those before it, none after it, and no sibling", () => {
  for (const [room, groups] of Object.entries(parts)) {
    const folders = groups.flat().filter((part) => !part.endsWith(".ts"));
    const groupOf = (part: string) => groups.findIndex((group) => group.includes(part));
    const doors = Object.fromEntries(folders.map((part) => [`src/${room}/${part}/index.ts`, "export type x = 1;"]));
    for (const from of folders) {
      for (const to of folders) {
        const importing = {
          [`src/${room}/${from}/y.ts`]: `import type { x } from "../${to}/index.ts"; export type y = x;`,
        };
        const allowed = from === to || groupOf(to) < groupOf(from);
        const problems = checkArchitecture(createProject({ ...doors, ...importing }, manifest));
        expect(problems, `${room}: ${from} → ${to}`).toHaveLength(allowed ? 0 : 1);
      }
    }
  }
});

test("a pure file loads nothing that is not pure, and may name its types", () => {
  const file = "src/plans/compose/a.ts";
  expect(problemsWith({ [file]: 'export { workspace } from "../../host/index.ts";' })).toEqual([
    `${file}:1 → ../../host/index.ts → is not pure, and this file is.`,
  ]);
  expect(problemsWith({ [file]: 'export type { W } from "../../host/index.ts";' })).toEqual([]);
});

test("import() names the file that it needs, in a room below", () => {
  const files = { "src/host/files/one.ts": "export const x = 1;" };
  const loads = (text: string) => problemsWith({ ...files, "src/rules/a.ts": text });
  expect(loads('export const x = () => import("../host/files/one.ts");')).toEqual([]);
  expect(loads('export { x } from "../host/files/one.ts";')).toEqual([expect.stringContaining("is no door")]);
});

test("a contract is for tests of every room, and no door exports it", () => {
  const text = 'export { describeStore } from "../../core/store/store.contract.ts";';
  const contract = { "src/core/store/store.contract.ts": "export const describeStore = 1;" };
  expect(problemsWith({ ...contract, "src/host/store/a.test.ts": text })).toEqual([]);
  expect(problemsWith({ ...contract, "src/host/store/index.ts": text })).toEqual([
    expect.stringContaining("is for tests: it loads vitest"),
  ]);
});

test("the scripted provider is for tests alone", () => {
  const text = 'export { createProvider } from "../../../scripts/provider/provider.mjs";';
  expect(problemsWith({ "src/core/text/a.test.ts": text })).toEqual([]);
  expect(problemsWith({ "src/core/text/a.ts": text })).toEqual([
    expect.stringContaining("is no TypeScript file in src"),
  ]);
});

test("siblings of a group do not know each other", () => {
  expect(problemsWith({ "src/core/store/a.ts": 'export { count } from "../tokens/index.ts";' })).toEqual([
    "src/core/store/a.ts:1 → ../tokens/index.ts → breaks the order: tokens and store are siblings in one group and do not know each other.",
  ]);
});

test("a folder is entered by its door alone, also by tests", () => {
  for (const file of ["src/core/text/a.ts", "src/core/text/a.test.ts"]) {
    expect(problemsWith({ [file]: '\nexport { count } from "../tokens/count.ts";' })).toEqual([
      `${file}:2 → ../tokens/count.ts → is no door. Import from src/core/tokens/index.ts.`,
    ]);
  }
  expect(
    problemsWith({
      "src/core/tokens/exact/index.ts": "export const x = 1;",
      "src/core/text/a.ts": 'export { x } from "../tokens/exact/index.ts";',
    }),
  ).toEqual([expect.stringContaining("../tokens/exact/index.ts → is no door.")]);
});

test.each([
  ['export { count } from "../public/index.ts";', "../public/index.ts → is for users"],
  ['export { count } from "plimsoll/tokens";', "plimsoll/tokens → goes through the package's own name"],
  ['export { x } from "../../bench/corpus.ts";', "../../bench/corpus.ts → is no TypeScript file in src"],
  ["export const x = (name: string) => import(name);", "import(…) → has a computed name"],
])("no way around the doors: %s", (text, problem) => {
  expect(problemsWith({ "src/host/a.ts": text })).toContainEqual(expect.stringContaining(problem));
});

test("a folder that is no room is found", () => {
  expect(problemsWith({ "src/magic/index.ts": "export const x = 1;" })).toEqual([
    expect.stringContaining("src/magic/index.ts:1 → src/magic → is in no room."),
  ]);
});

test.each([
  ["process.env.HOME", "process"],
  ["process.cwd()", "process"],
  ["globalThis.process", "globalThis"],
  ["{ process }", "process"],
  ["({ [process.pid]: 1 })", "process"],
  ["(fetch: () => 1) => 1", "fetch"],
  ["Date.now()", "Date.now"],
  ['Date["now"]()', "Date.now"],
  ["new Date()", "new Date()"],
  ["new Date", "new Date()"],
  ["Date()", "Date"],
  ["Math.random()", "Math.random"],
  ['Math["random"]()', "Math.random"],
  ["[Math].length", "Math"],
  ["setTimeout(() => 1, 5)", "setTimeout"],
  ["setInterval", "setInterval"],
  ["setImmediate", "setImmediate"],
  ['fetch("http://x")', "fetch"],
  ["crypto.randomUUID()", "crypto"],
  ["performance.now()", "performance"],
  ["console.log(1)", "console"],
  ["import.meta.url", "import.meta"],
  ['["b", "a"].sort((a, b) => a.localeCompare(b))', "localeCompare"],
  ["(5).toLocaleString()", "toLocaleString"],
])("%s is impure in a pure folder, and fine elsewhere", (expression, subject) => {
  const text = `\n\nexport const x = () => (${expression});`;
  expect(problemsWith({ "src/conversation/history/a.ts": text })).toEqual([
    `src/conversation/history/a.ts:3 → ${subject} → is not pure, and this file is. Let the caller pass it in.`,
  ]);
  expect(problemsWith({ "src/conversation/history/index.ts": text })).toHaveLength(1);
  expect(problemsWith({ "src/host/a.ts": text })).toEqual([]);
  expect(problemsWith({ "src/host/store/sqlite-lock.ts": text })).toEqual([]);
});

test.each(["fs", "fs/promises", "net", "http", "child_process", "os", "worker_threads", "timers", "process"])(
  "node:%s stays out of the pure part, with or without its prefix",
  (name) => {
    for (const specifier of [`node:${name}`, name]) {
      const text = `import * as x from "${specifier}"; export const y = x;`;
      expect(problemsWith({ "src/core/store/memory.ts": text })).toEqual([
        expect.stringContaining(`src/core/store/memory.ts:1 → ${specifier} → is not pure`),
      ]);
      expect(problemsWith({ "src/host/files/read-foreign.ts": text })).toEqual([]);
    }
  },
);

test.each([
  ["src/core/text/a.ts", 'import { Command } from "commander";', "commander → is no package for pure code"],
  ["src/core/text/a.ts", 'import type { Command } from "commander";', "commander → is no package for pure code"],
  ["src/core/text/a.ts", 'import type { Database } from "libsql";', "libsql → does not belong here"],
  ["src/core/text/a.ts", 'export const x = () => import("gpt-tokenizer");', "gpt-tokenizer → does not belong here"],
  ["src/core/tokens/exact.ts", 'import * as x from "gpt-tokenizer/model/x";', "model/x → does not belong here"],
  ["src/host/store/postgres.ts", 'import { Client } from "pg";', "pg → is heavy. Load it with import()"],
  ["src/host/store/sqlite.ts", 'import { Database } from "libsql";', "libsql → is heavy. Load it with import()"],
  ["src/cli/a.ts", 'import fc from "fast-check";', "fast-check → is neither in package.json nor bundled"],
  [
    "src/cli/a.ts",
    'import { x } from "@scope/name/deep";',
    "@scope/name/deep → is neither in package.json nor bundled",
  ],
])("%s may not %s", (file, text, problem) => {
  const problems = problemsWith({ "src/host/index.ts": "", [file]: text });
  expect(problems).toEqual([expect.stringContaining(problem)]);
  expect(problems[0]?.startsWith(`${file}:1 → `)).toBe(true);
});

test.each([
  [
    "src/public/store.ts",
    'export { open } from "../host/store/sqlite.ts";',
    "../host/store/sqlite.ts",
    "a store driver",
  ],
  [
    "src/public/store.ts",
    'export { type Options } from "../host/store/sqlite.ts";',
    "../host/store/sqlite.ts",
    "a store driver",
  ],
  ["src/core/tokens/index.ts", 'import "./exact.ts";', "./exact.ts", "a counter's tables"],
  ["src/cli/main.ts", 'import "./commands/count.ts";', "./commands/count.ts", "a command"],
])("%s is light: %s is found", (entry, text, target, what) => {
  const reached = posix.join(posix.dirname(entry), target);
  expect(problemsWith({ [entry]: text })).toContainEqual(
    `${entry}:1 → ${reached} → is ${what}, loaded together with ${entry}. Load it with import() where it is used.`,
  );
});

test("what a door must not load is found over any number of files", () => {
  const problems = problemsWith({
    "src/core/tokens/count.ts": 'export { count } from "./far.ts";',
    "src/core/tokens/far.ts": 'import "gpt-tokenizer"; export const count = 1;',
  });
  const chain =
    "src/core/tokens/count.ts → src/core/tokens/far.ts → gpt-tokenizer → is a tokenizer, loaded together with";
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringContaining(`src/core/tokens/index.ts:1 → ${chain} src/core/tokens/index.ts.`),
      expect.stringContaining(`src/public/index.ts:1 → src/core/tokens/index.ts → ${chain} src/public/index.ts.`),
    ]),
  );
});

test.each([
  ['import { readFile } from "node:fs/promises"; export const x = readFile;', "readFile"],
  ['import { readFileSync as read } from "node:fs"; export const x = read;', "readFileSync"],
  ['import { createReadStream } from "fs"; export const x = createReadStream;', "createReadStream"],
  ['import { open } from "fs/promises"; export const x = open;', "open"],
  ['import { openSync } from "node:fs"; export const x = openSync;', "openSync"],
  ['import { cpSync } from "node:fs"; export const x = cpSync;', "cpSync"],
  ['import { promises } from "node:fs"; export const x = promises;', "promises"],
  ['import * as files from "node:fs"; export const x = files;', "default"],
  ['import files from "node:fs"; export const x = files;', "default"],
  ['export const x = () => import("node:fs");', "import(…)"],
  ['export { readFile } from "node:fs/promises";', "export"],
  ['export const x = require("fs");', "require"],
])("%s reads foreign files in its own way", (text, subject) => {
  const reads = (path: string) => problemsWith({ [path]: text }).filter((problem) => problem.includes("reads a file"));
  expect(reads("src/host/a.ts")).toEqual([
    `src/host/a.ts:1 → ${subject} → reads a file in its own way. Use readForeign, or readTextFile for what a person typed.`,
  ]);
  expect(reads("src/host/files/read-foreign.ts")).toEqual([]);
  expect(problemsWith({ "src/host/a.test.ts": text })).toEqual([]);
});

test("looking at files and types of the file system are allowed everywhere", () => {
  const text = `import { type Dirent, statSync } from "node:fs";
    import type { FileHandle } from "node:fs/promises";
    export const x = [statSync] as unknown as [Dirent, FileHandle];`;
  expect(problemsWith({ "src/host/a.ts": text })).toEqual([]);
});

test("a reader that no longer reads is found", () => {
  const path = "src/host/files/read-foreign.ts";
  const idle = (text: string) => idleReaders(createProject({ [path]: text }, manifest).sources);
  expect(idle("export const x = 1;")).toContain(path);
  expect(idle('import { openSync } from "node:fs"; export const x = openSync;')).not.toContain(path);
});

test.each([
  ['export * from "./b.ts";', "export *"],
  ['export * as b from "./b.ts";', "export *"],
  ["export default 1;", "default export"],
  ["const x = 1; export { x as default };", "default export"],
  ['export { default } from "./b.ts";', "default export"],
])("%s is no way to export", (text, subject) => {
  expect(problemsWith({ "src/core/text/a.ts": text, "src/core/text/b.ts": "export const b = 1;" })).toEqual([
    expect.stringContaining(`src/core/text/a.ts:1 → ${subject} → `),
  ]);
});

test("names that say nothing are found, and only those", () => {
  for (const name of ["utils.ts", "helpers.ts", "types.ts", "common.ts", "util.test.ts", "helpers/join.ts"]) {
    expect(problemsWith({ [`src/cli/${name}`]: "" })).toEqual([
      expect.stringContaining(`src/cli/${name}:1 → ${name.split("/")[0]} → says nothing.`),
    ]);
  }
  expect(problemsWith({ "src/cli/type-guard.ts": "", "src/cli/commonmark.ts": "" })).toEqual([]);
});

test("more than 500 lines need a reason at the top", () => {
  const lines = (count: number) => "export {};\n".repeat(count);
  expect(problemsWith({ "src/cli/a.ts": lines(500) })).toEqual([]);
  expect(problemsWith({ "src/cli/a.ts": lines(501) })).toEqual([
    expect.stringContaining("src/cli/a.ts:501 → 501 lines → is too long"),
  ]);
  const reason = "/** Prices by model. Long because it is a table. */\n";
  expect(problemsWith({ "src/cli/a.ts": reason + lines(501) })).toEqual([]);
  expect(problemsWith({ "src/cli/a.ts": lines(501) + reason })).toHaveLength(1);
});
