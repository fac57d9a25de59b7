import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../../../test/make-repository.ts";
import { defaultConfig } from "./config.ts";
import { loadConfig } from "./load-config.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-config-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function load(cwd = "project", env: Record<string, string> = {}) {
  mkdirSync(join(root, cwd), { recursive: true });
  return loadConfig({ cwd: join(root, cwd), env: { HOME: join(root, "home"), ...env } });
}

const trusted = { PLIMSOLL_TRUST: "1" };

test("without files every value is a default", async () => {
  const { values, sources } = await load();
  expect(values).toEqual(defaultConfig);
  expect(new Set(Object.values(sources))).toEqual(new Set(["default"]));
  expect(sources).toMatchObject({
    counter: "default",
    "context.shares.fabric": "default",
    verbosity: "default",
  });
});

test("the project wins over the user, key by key", async () => {
  write("home/.config/plimsoll/config.yaml", "title: Mine\nprofile: user\nhistory: { keep: 3, reserve: 5 }\n");
  write("project/.plimsoll/config.yaml", "counter: bytes/4\nprofile: project\nhistory:\n  keep: 4\n");
  const { values, sources } = await load();
  expect(values).toEqual({
    ...defaultConfig,
    counter: "bytes/4",
    title: "Mine",
    profile: "project",
    history: { ...defaultConfig.history, keep: 4, reserve: 5 },
  });
  expect(sources).toMatchObject({
    counter: "project .plimsoll/config.yaml:1",
    title: "user ~/.config/plimsoll/config.yaml:1",
    profile: "project .plimsoll/config.yaml:2",
    "history.keep": "project .plimsoll/config.yaml:4",
    "history.reserve": "user ~/.config/plimsoll/config.yaml:3",
    "history.policy": "default",
  });
});

test("joins the entries of a mapping, and the mapping is not a default any more", async () => {
  write("home/.config/plimsoll/config.yaml", "verbosity: { cursor: full, codex: full }\n");
  write("project/.plimsoll/config.yaml", "verbosity: { codex: minimal }\nprices: {}\n");
  const { values, sources } = await load();
  expect(values.verbosity).toEqual({ cursor: "full", codex: "minimal" });
  expect(sources).not.toHaveProperty("verbosity");
  expect(sources["verbosity.cursor"]).toMatch(/^user /);
  expect(sources["verbosity.codex"]).toMatch(/^project /);
  expect(sources.prices).toBe("project .plimsoll/config.yaml:2");
});

test("never mixes the company layer from two files", async () => {
  write("home/.config/plimsoll/config.yaml", "company: { source: ../a, revision: v1 }\n");
  write("project/.plimsoll/config.yaml", "company: { source: ../b }\n");
  const { values, sources } = await load("project", trusted);
  expect(values.company).toEqual({ source: "../b" });
  expect(sources.company).toBe("project .plimsoll/config.yaml:1");
});

test("leaves a powerful setting out until it is trusted, and uses the user's own value", async () => {
  write("home/.config/plimsoll/config.yaml", "company: { source: ../a }\nprices: { m: { input: 1 } }\n");
  write("project/.plimsoll/config.yaml", "title: Ours\ncompany: { source: ../b }\nprices: { m: { input: 0 } }\n");
  const { values, sources, powerful, leftOut } = await load();
  expect(values).toMatchObject({ title: "Ours", company: { source: "../a" }, prices: { m: { input: 1 } } });
  expect(sources.company).toMatch(/^user /);
  const shown = leftOut.map(({ file, line, key, value }) => ({
    file: relative(root, file),
    line,
    key,
    value,
  }));
  const file = "project/.plimsoll/config.yaml";
  expect(shown).toEqual([
    { file, line: 2, key: "company", value: '{"source":"../b"}' },
    { file, line: 3, key: "prices", value: '{"m":{"input":0}}' },
  ]);
  expect(powerful).toEqual(leftOut);
  expect(await load("project", trusted)).toMatchObject({ leftOut: [], powerful });
});

test("leaves a project's store out, trusted or not, and reports its place", async () => {
  write("project/.plimsoll/config.yaml", "title: Ours\nstore: planted.db\n");
  for (const env of [{}, trusted]) {
    const { values, sources, ignoredStore } = await load("project", env);
    expect({ store: values.store, source: sources.store }).toEqual({ store: "default", source: "default" });
    expect(ignoredStore).toEqual({ file: ".plimsoll/config.yaml", line: 2 });
  }
  write("project/.plimsoll/config.yaml", "store: default\n");
  expect((await load()).ignoredStore).toBeUndefined();
});

test("a model named like a whole key is joined like any other", async () => {
  write("home/.config/plimsoll/config.yaml", "prices: { company: { input: 1, output: 2 } }\n");
  write("project/.plimsoll/config.yaml", "prices: { company: { input: 3 } }\n");
  expect((await load("project", trusted)).values.prices).toEqual({ company: { input: 3, output: 2 } });
});

test("names with dots keep their sources apart", async () => {
  write("home/.config/plimsoll/config.yaml", 'prices: { gpt-4: { "1.input": 1 } }\n');
  write("project/.plimsoll/config.yaml", "prices: { gpt-4.1: { input: 2 } }\nsession: { tools: { 'a\"b': 600 } }\n");
  const { sources } = await load("project", trusted);
  expect(sources).toMatchObject({
    'prices.gpt-4."1.input"': "user ~/.config/plimsoll/config.yaml:1",
    'prices."gpt-4.1".input': "project .plimsoll/config.yaml:1",
    'session.tools."a\\"b"': "project .plimsoll/config.yaml:2",
  });
});

test("finds the file from a subdirectory and shows it relative to it", async () => {
  write("project/.plimsoll/config.yaml", "title: Up\n");
  expect((await load("project/a/b")).sources.title).toBe("project ../../.plimsoll/config.yaml:1");
});

test("the search ends at the root of the repository", async () => {
  write("project/.plimsoll/config.yaml", "title: Outer\n");
  makeRepository(join(root, "project/inner"));
  expect((await load("project/inner/src")).values.title).toBe("Developer Context");
});

test("the search ends at HOME, even if HOME ends with a slash", async () => {
  write(".plimsoll/config.yaml", "title: Outer\n");
  expect((await load("home/work")).values.title).toBe("Developer Context");
  const { values } = await load("home/work", { HOME: `${join(root, "home")}/` });
  expect(values.title).toBe("Developer Context");
});

test("XDG_CONFIG_HOME moves the user's file, which is shown in full outside HOME", async () => {
  write("xdg/plimsoll/config.yaml", "title: Xdg\n");
  const { sources } = await load("project", { XDG_CONFIG_HOME: join(root, "xdg") });
  expect(sources.title).toBe(`user ${join(root, "xdg/plimsoll/config.yaml")}:1`);
});

test("a folder below HOME whose name starts with two dots is below HOME", async () => {
  write("home/..xdg/plimsoll/config.yaml", "title: Xdg\n");
  const { sources } = await load("project", { XDG_CONFIG_HOME: join(root, "home/..xdg") });
  expect(sources.title).toBe("user ~/..xdg/plimsoll/config.yaml:1");
});

test("reports the problems of both files in one error at the first place", async () => {
  write("home/.config/plimsoll/config.yaml", "\nconter: auto\n");
  write("project/.plimsoll/config.yaml", "title: 3\nhistory: { keep: -1 }\n");
  await expect(load()).rejects.toMatchObject({
    code: "invalid_config",
    file: "~/.config/plimsoll/config.yaml",
    line: 2,
    message: [
      'unknown key "conter". Did you mean "counter"?',
      '.plimsoll/config.yaml:1: "title" must be a text, not 3',
      '.plimsoll/config.yaml:2: "history.keep" must be at least 0, not -1',
    ].join("\n"),
  });
});

test("refuses shares that are all 0 at the last file that sets one, after reading both files", async () => {
  write("home/.config/plimsoll/config.yaml", "context: { shares: { project: 0, fabric: 0, prior_work: 0 } }\n");
  await expect(load()).rejects.toMatchObject({ file: "~/.config/plimsoll/config.yaml", line: 1 });
  write("project/.plimsoll/config.yaml", "context:\n  max_tokens: 9\n  shares:\n    fabric: 0\n");
  await expect(load()).rejects.toMatchObject({
    code: "invalid_config",
    message: '"context.shares" must not all be 0',
    hint: expect.stringContaining("context.max_tokens: 0"),
    file: ".plimsoll/config.yaml",
    line: 3,
  });
  write("project/.plimsoll/config.yaml", "context: { shares: { fabric: 1 } }\n");
  expect((await load()).values.context.shares).toEqual({ project: 0, fabric: 1, prior_work: 0 });
});

test("a configuration file that cannot be read is an error, not a missing file", async () => {
  mkdirSync(join(root, "project/.plimsoll/config.yaml"), { recursive: true });
  await expect(load()).rejects.toMatchObject({
    code: "unreadable_input",
    message: "is a directory",
    file: ".plimsoll/config.yaml",
  });
});

test("a file instead of the directory is not a configuration", async () => {
  write("project/.plimsoll", "");
  expect((await load()).values).toEqual(defaultConfig);
});

test("joins lists of secrets, so no file undoes what another one denies", async () => {
  write("home/.config/plimsoll/config.yaml", "deny: [private/**]\n");
  write("project/.plimsoll/config.yaml", 'title: "x"\ndeny: ["*.tfstate"]\nallow: []\n');
  const { values, sources } = await load("project");
  expect(values.deny).toEqual(["private/**", "*.tfstate"]);
  expect(sources.deny).toBe("user ~/.config/plimsoll/config.yaml:1, project .plimsoll/config.yaml:2");
  expect(values.allow).toEqual([]);
  expect(sources.allow).toBe("default");
});
