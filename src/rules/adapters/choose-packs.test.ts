import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lonelyFolder } from "../files/project-tree.ts";
import { builtInProfiles, createPackSource, mergeLayers, type Pack, type Profile } from "../packs/index.ts";
import { choosePacks, type PackSelection } from "./load-packs.ts";

const [all, minimal] = builtInProfiles as [Profile, Profile];
const files = [
  { id: "base", base: true },
  { id: "git" },
  { id: "node", name: "Node.js", detect: ["package.json"] },
  { id: "python", name: "Python", detect: ["pyproject.toml", "*.py"] },
];
const packs: readonly Pack[] = mergeLayers(
  [{ layer: "embedded", sources: files.map((pack) => createPackSource({ pack, texts: {}, directory: pack.id })) }],
  { language: "en" },
).packs;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-packs-"));
});
afterEach(() => rmSync(root, { recursive: true }));

async function choose(selection: PackSelection = {}, profile: Profile = all): Promise<Record<string, string>> {
  const choices = await choosePacks(packs, { selection, profile, readTree: async () => lonelyFolder(root) });
  return Object.fromEntries(choices.map(({ pack, used, why }) => [pack.id, `${used ? "yes" : "no"}: ${why}`]));
}

test("uses the packs of the languages that the project has", async () => {
  writeFileSync(join(root, "package.json"), "{}");
  expect(await choose()).toEqual({
    base: "yes: base pack",
    git: "yes: for every project",
    node: "yes: package.json found",
    python: "no: no Python files found",
  });
});

test("names the file that was found", async () => {
  mkdirSync(join(root, "api"));
  writeFileSync(join(root, "api/main.py"), "");
  expect(await choose()).toMatchObject({ python: "yes: api/main.py found", node: "no: no Node.js files found" });
});

test("uses only the built-in packs that the configuration names, and every other pack", async () => {
  writeFileSync(join(root, "package.json"), "{}");
  const from = "packs.built_in in config.yaml:2";
  const chosen = await choose({ builtIn: { ids: ["python"], from } });
  expect(chosen).toEqual({
    base: `no: not in ${from}`,
    git: `no: not in ${from}`,
    node: `no: not in ${from}`,
    python: `yes: asked for by ${from}`,
  });
  const asked = { ids: ["git"], from: "--pack" };
  expect(await choose({ asked, builtIn: { ids: [], from } })).toMatchObject({
    base: "no: not in --pack",
    git: "yes: asked for by --pack",
  });
  const own = packs.map((pack) => ({ ...pack, layer: "project" as const }));
  const choices = await choosePacks(own, { selection: { builtIn: { ids: [], from } }, profile: all });
  expect(choices.every(({ used }) => used)).toBe(true);
});

test("uses an optional pack only where it is named", async () => {
  const brief = packs.map((pack) => ({ ...pack, optional: pack.id === "git" }));
  const useGit = async (selection: PackSelection, profile: Profile = all) =>
    (await choosePacks(brief, { selection, profile })).find(({ pack }) => pack.id === "git")?.used;
  const list = { ids: ["git"], from: "here" };
  expect(await useGit({})).toBe(false);
  expect(await useGit({ include: list })).toBe(true);
  expect(await useGit({ asked: list })).toBe(true);
  expect(await useGit({ builtIn: list })).toBe(true);
  expect(await useGit({}, { ...all, packs: [{ id: "git" }] })).toBe(true);
});

test("lists of a person win over the files of the project", async () => {
  writeFileSync(join(root, "package.json"), "{}");
  const include = { ids: ["python"], from: "packs.include in config.yaml:2" };
  const exclude = { ids: ["base"], from: "packs.exclude in config.yaml:3" };
  expect(await choose({ include, exclude })).toEqual({
    base: "no: excluded by packs.exclude in config.yaml:3",
    git: "no: not in packs.include in config.yaml:2",
    node: "no: not in packs.include in config.yaml:2",
    python: "yes: asked for by packs.include in config.yaml:2",
  });
  expect(await choose({ asked: { ids: ["node"], from: "--pack" }, include })).toEqual({
    base: "yes: base pack",
    git: "no: not in --pack",
    node: "yes: asked for by --pack",
    python: "no: not in --pack",
  });
});

test("a pack that the profile lists is used", async () => {
  const profile = { ...all, id: "data", packs: [{ id: "python", weight: 9 }] };
  expect(await choose({}, profile)).toMatchObject({ python: 'yes: asked for by profile "data"' });
});

test("`only` of a profile uses just these packs, and --pack wins over it", async () => {
  const profile = { ...all, id: "docs", only: ["python"] };
  const expected = {
    base: 'no: not in profile "docs"',
    git: 'no: not in profile "docs"',
    node: 'no: not in profile "docs"',
    python: 'yes: asked for by profile "docs"',
  };
  expect(await choose({}, profile)).toEqual(expected);
  expect(await choose({ include: { ids: ["git"], from: "packs.include" } }, profile)).toEqual(expected);
  expect(await choose({ asked: { ids: ["git"], from: "--pack" } }, profile)).toMatchObject({
    git: "yes: asked for by --pack",
    python: "no: not in --pack",
  });
});

test("the profile minimal uses base packs only", async () => {
  writeFileSync(join(root, "package.json"), "{}");
  const why = 'no: profile "minimal" has base packs only';
  expect(await choose({}, minimal)).toEqual({ base: "yes: base pack", git: why, node: why, python: why });
});

test("files that serve every project get every pack", async () => {
  const choices = await choosePacks(packs, { selection: {}, profile: all });
  expect(choices.every(({ used }) => used)).toBe(true);
});
