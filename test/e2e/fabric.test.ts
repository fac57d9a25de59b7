import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CallOptions, createSandbox, type Sandbox } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n');
});
afterEach(() => sandbox.remove());

test.each(["", "show", "add", "add entanglement", "add claim", "add discovery", "add note", "resolve"])(
  "the help of fabric %s is as pinned",
  async (name) => {
    const words = ["fabric", ...name.split(" ").filter((word) => word !== "")];
    const help = await sandbox.call([...words, "--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    await expect(help.stdout).toMatchFileSnapshot(`golden/help-${words.join("-")}.txt`);
  },
);

const fabric = (args: readonly string[], options?: CallOptions) => sandbox.call(["fabric", ...args], options);

const done = (stdout: string) => ({ code: 0, stdout, stderr: "" });
const stateFile = () => join(sandbox.home, ".local/state/plimsoll/state.db");

test("people add to the fabric of a nebula, and see what phases will see", async () => {
  const plan = ["--nebula", "plan"];
  const added = [
    ["entanglement", "parse(text: string): Ast", "--package", "parser", "--kind", "function", "--file", "src/parse.ts"],
    ["claim", "docs/**"],
    ["discovery", "no schema yet", "--affects", "page"],
    ["discovery", "two names\nfor one type", "--kind", "conflict"],
    ["note", "dates are ISO 8601", "--kind", "decision"],
    ["note", "ports from 4000"],
  ];
  const ids = [];
  for (const args of added) ids.push(await fabric(["add", ...args, ...plan]));
  expect(ids).toEqual(["e1", "c1", "d1", "d2", "n1", "n2"].map((id) => done(`${id}\n`)));
  expect(await fabric(["resolve", "d1", ...plan])).toEqual(done("d1\n"));

  const today = new Date().toISOString().slice(0, 10);
  const { stdout } = await fabric(["show", ...plan]);
  // The test may run at midnight.
  expect(
    stdout.replace(/\d{4}-\d\d-\d\d/, today),
  ).toBe(`## Fabric State (0 completed, 0 in progress, 0 blocked, 1 entanglements, 1 unresolved)

### Available Entanglements
#### parser (from: person)
- function parse(text: string): Ast (src/parse.ts)

### Active File Claims
- docs/** → person

### Unresolved Discoveries
- [conflict] two names for one type (from: person, ${today}, d2)

### Shared Notes
#### Decisions
- dates are ISO 8601 (from: person)
#### Notes
- ports from 4000 (from: person)
`);
  const state = JSON.parse((await fabric(["show", ...plan, "--json"])).stdout) as Record<string, object[]>;
  expect(Object.keys(state)).toEqual(["phases", "entanglements", "claims", "discoveries", "notes"]);
  expect(state.discoveries).toMatchObject([
    { id: "d1", kind: "blocker", affects: "page", resolved: true },
    { id: "d2", kind: "conflict", detail: "two names\nfor one type", resolved: false },
  ]);
  expect(existsSync(stateFile())).toBe(true);
});

test("a running phase knows its nebula, its store and itself", async () => {
  mkdirSync(join(sandbox.cwd, "elsewhere"));
  const inPhase: CallOptions = {
    cwd: join(sandbox.cwd, "elsewhere"),
    env: {
      PLIMSOLL_NEBULA: join(sandbox.cwd, "plan"),
      PLIMSOLL_PHASE: "parser",
      PLIMSOLL_STORE: join(sandbox.cwd, "run.db"),
    },
  };
  const { stdout } = await fabric(["add", "claim", "src/parse.ts", "--json"], inPhase);
  expect(JSON.parse(stdout)).toEqual({ id: "c1", path: "src/parse.ts", owner: "parser" });
  expect(await fabric(["add", "claim", "src/parse.ts"], inPhase)).toEqual({
    code: 0,
    stdout: "",
    stderr: "plimsoll: parser already reported this as c1\n",
  });
  // What a script prints there is what its phase answers.
  const told = async (...args: string[]) => (await fabric(args, inPhase)) as object;
  expect(await told("add", "note", "x")).toEqual({ code: 0, stdout: "", stderr: "plimsoll: added n1\n" });
  expect(await told("add", "note", "y", "--quiet")).toEqual(done(""));
  expect(await told("resolve", "n1")).toEqual({ code: 0, stdout: "", stderr: "plimsoll: resolved n1\n" });
  expect(existsSync(stateFile())).toBe(false);
  // Options win over the environment, and every way to the folder is the same nebula.
  symlinkSync(join(sandbox.cwd, "plan"), join(sandbox.cwd, "link"));
  const { stdout: text } = await fabric(["show", "--nebula", "link", "--store", "run.db"]);
  expect(text).toContain("- src/parse.ts → parser\n");
  sandbox.write("other/nebula.toml", "[nebula]\n");
  const other = await fabric(["show", "--nebula", "../other", "--json"], inPhase);
  expect(JSON.parse(other.stdout)).toMatchObject({ claims: [] });
});

test("what has nothing to tell is empty, and looking makes no store", async () => {
  expect(await fabric(["show", "--nebula", "plan"])).toEqual({
    code: 0,
    stdout: "",
    stderr: "plimsoll: the fabric is empty: no phase has run, and nothing was added\n",
  });
  const { stdout } = await fabric(["show", "--nebula", "plan", "--json"]);
  expect(JSON.parse(stdout)).toEqual({
    phases: [],
    entanglements: [],
    claims: [],
    discoveries: [],
    notes: [],
  });
  expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
});

test("an entry that was resolved can come back, one that is there comes back as itself", async () => {
  const plan = ["--nebula", "plan"];
  const add = () => fabric(["add", "discovery", "no schema", ...plan]);
  expect((await add()).stdout).toBe("d1\n");
  expect(await add()).toEqual({
    code: 0,
    stdout: "d1\n",
    stderr: "plimsoll: person already reported this as d1\n",
  });
  expect((await fabric(["add", "discovery", "no schema", "--affects", "x", ...plan])).stdout).toBe("d2\n");
  expect((await add()).stdout).toBe("d1\n");
  const resolved = await fabric(["resolve", "d1", ...plan, "--json"]);
  expect(JSON.parse(resolved.stdout)).toMatchObject({ id: "d1", resolved: true });
  expect(await fabric(["resolve", "d1", ...plan])).toEqual({
    code: 0,
    stdout: "d1\n",
    stderr: "plimsoll: d1 was resolved before\n",
  });
  expect((await add()).stdout).toBe("d3\n");
});

test("what people added can be taken out again, by its id", async () => {
  const plan = ["--nebula", "plan"];
  await fabric(["add", "claim", "docs/**", ...plan]);
  await fabric(["add", "note", "ports from 4000", ...plan]);
  expect(await fabric(["resolve", "c1", ...plan])).toEqual(done("c1\n"));
  const { stdout } = await fabric(["resolve", "n1", ...plan, "--json"]);
  expect(JSON.parse(stdout)).toEqual({ id: "n1", kind: "note", text: "ports from 4000", from: "person" });
  const state = JSON.parse((await fabric(["show", ...plan, "--json"])).stdout);
  expect(state).toMatchObject({ claims: [], notes: [] });
});

describe("wrong usage does nothing and says what to do", () => {
  test.each([
    [["show"], 2, "no nebula is named. Name its folder with --nebula DIR. Inside a running phase it is known."],
    [
      ["add", "note", "x"],
      2,
      "no nebula is named. Name its folder with --nebula DIR. Inside a running phase it is known.",
    ],
    [
      ["show", "--nebula", "."],
      1,
      "nebula.toml: no such file or directory. A nebula is a folder with nebula.toml and phase files, *.md.",
    ],
    [
      ["add", "claim", "x", "--nebula", "none"],
      1,
      "none/nebula.toml: no such file or directory. A nebula is a folder with nebula.toml and phase files, *.md.",
    ],
    [["resolve", "d1", "--nebula", "plan"], 2, 'the fabric has no entry "d1". It has no entries.'],
    [
      ["add", "note", "x".repeat(2_001), "--nebula", "plan"],
      2,
      "the text has 2001 characters, but at most 2000 are allowed. Shorten it.",
    ],
    [["add", "note", " \n ", "--nebula", "plan"], 2, "the text is empty. Describe it in a few words."],
    [
      ["add", "note", "x", "--kind", "decison", "--nebula", "plan"],
      2,
      '--kind is "decison". Did you mean "decision"? Choose from decision, failure, feedback, note.',
    ],
    [
      ["add", "entanglement", "parse()", "--kind", "function", "--nebula", "plan"],
      2,
      '--package is missing. See "plimsoll fabric add entanglement --help".',
    ],
    [
      ["add", "entanglement", "parse()", "--package", "parser", "--nebula", "plan"],
      2,
      '--kind is missing. See "plimsoll fabric add entanglement --help".',
    ],
    [["add", "claims", "x"], 2, 'unknown command "fabric add claims". Did you mean "claim"?'],
    [["add", "claim"], 2, 'PATH is missing. See "plimsoll fabric add claim --help".'],
  ])("%j", async (args, code, told) => {
    expect(await fabric(args)).toEqual({ code, stdout: "", stderr: `plimsoll: ${told}\n` });
    expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
  });

  test("an unknown entry is told with those that there are", async () => {
    await fabric(["add", "discovery", "no schema", "--nebula", "plan"]);
    expect(await fabric(["resolve", "d2", "--nebula", "plan"])).toEqual({
      code: 2,
      stdout: "",
      stderr: 'plimsoll: the fabric has no entry "d2". It has d1.\n',
    });
  });
});

const [writers, entriesEach] = deep ? [8, 25] : [4, 3];

test(`${writers} processes that add at once lose nothing`, { tags: ["deep"], timeout: 240_000 }, async () => {
  const add = async (writer: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let index = 0; index < entriesEach; index++) {
      const env = { PLIMSOLL_PHASE: `phase-${writer}` };
      const args = ["fabric", "add", "note", `note ${index}`, "--nebula", "plan", "--json"];
      const { code, stdout, stderr } = await sandbox.run(args, { env });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      ids.push(JSON.parse(stdout).id);
    }
    return ids;
  };
  const ids = (await Promise.all(Array.from({ length: writers }, (_, writer) => add(writer)))).flat();
  const { stdout } = await sandbox.run(["fabric", "show", "--nebula", "plan", "--json"]);
  const { notes } = JSON.parse(stdout) as { notes: { id: string; text: string; from: string }[] };
  const all = Array.from({ length: writers * entriesEach }, (_, index) => `n${index + 1}`);
  expect(notes.map(({ id }) => id)).toEqual(all);
  // Everyone was told the id of their own entry.
  expect(ids.toSorted()).toEqual(all.toSorted());
  expect(new Set(notes.map(({ from, text }) => `${from} ${text}`)).size).toBe(all.length);
});
