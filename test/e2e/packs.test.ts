import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  makeRepository(sandbox.cwd);
});
afterEach(() => sandbox.remove());

const root = fileURLToPath(new URL("../..", import.meta.url));

function pack(id: string, yaml = "", context = `## ${id}\n`): void {
  sandbox.write(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\n${yaml}`);
  sandbox.write(`.plimsoll/packs/${id}/context.md`, context);
}

async function json(...args: string[]) {
  return JSON.parse((await sandbox.call([...args, "--json"])).stdout);
}

test.each(["", "list", "show", "lint"])("the help of packs %s is as pinned", async (name) => {
  const help = await sandbox.call(["packs", ...(name === "" ? [] : [name]), "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot(`golden/help-packs${name === "" ? "" : `-${name}`}.txt`);
});

test("the list has this shape, in the order of the profile, and counts tokens by tier", async () => {
  pack("ours", "name: Ours\nweight: 95\noverlaps: [git]\n", "## Ours\n\n<!-- verbosity:detail -->\n12345678\n");
  sandbox.write(".plimsoll/packs/ours/preamble.md", "1234");
  const packs = await json("packs", "list", "--counter", "bytes/4");
  expect(packs.slice(0, 2).map(({ id }: { id: string }) => id)).toEqual(["base", "ours"]);
  expect(packs[1]).toEqual({
    ...{ id: "ours", name: "Ours", layer: "project", weight: 95, base: false, overlaps: ["git"] },
    ...{ globs: [], nested: false, skills: [] },
    tokens: { core: 4, detail: 3, extended: 0 },
    ...{ used: true, why: "for every project" },
  });
  expect(packs[0]).toMatchObject({ layer: "embedded", base: true });
  const { stdout } = await sandbox.run(["packs", "list"]);
  expect(stdout).toMatch(/^ours +yes +project +95 +\d+ +\d+ +0 +git +for every project$/m);
  expect(stdout).toMatch(/\ntokens by estimate:claude-5\n$/);
});

test("a profile gives its own weights and order, minimal only base packs", async () => {
  sandbox.write("package.json", "{}");
  const frontend = await json("packs", "list", "--profile", "frontend");
  const ids = frontend.map(({ id }: { id: string }) => id);
  expect(ids.indexOf("typescript")).toBeLessThan(ids.indexOf("node"));
  expect(frontend.find(({ id }: { id: string }) => id === "typescript").weight).toBe(100);
  const minimal = await json("packs", "list", "--profile", "minimal");
  expect(minimal.every(({ base, used }: { base: boolean; used: boolean }) => base === used)).toBe(true);
});

test("another content directory, language, counter and the user's own packs can be asked for", async () => {
  const sap = await json("packs", "list", "--content", join(root, "examples/sap"));
  expect(sap.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(["base", "cap", "btp-core"]));
  const german = await json("packs", "list", "--lang", "de");
  expect(german[0].name).toBe("Arbeitsweise");
  const exact = await sandbox.call(["packs", "list", "--counter", "exact:o200k"]);
  expect(exact.stdout).toContain("tokens by exact:o200k");
  expect(await sandbox.call(["packs", "list", "--counter", "bytes/4,chars/3.5"])).toMatchObject({ code: 2 });
  pack("ours");
  const user = (await json("packs", "list", "--global")).map(({ id }: { id: string }) => id);
  expect(user).not.toContain("ours");
});

test("a pack that cannot be read is told, the others are listed, and the exit code is 1", async () => {
  pack("ours", "wieght: 3\n");
  const { code, stdout, stderr } = await sandbox.call(["packs", "list"]);
  expect(code).toBe(1);
  expect(stdout).toContain("base ");
  expect(stderr).toContain('.plimsoll/packs/ours/pack.yaml:2: unknown key "wieght". Did you mean "weight"?');
});

test("show tells where a pack comes from, what replaces it, and its text at a verbosity", async () => {
  pack("git", "additive: true\n", "## Ours\n\n<!-- verbosity:detail -->\nA\ttab.\n");
  const shown = await json("packs", "show", "git", "--verbosity", "standard");
  expect(shown).toMatchObject({
    ...{ id: "git", layer: "project", profile: "all", kept: true, droppedBy: null, verbosity: "standard" },
    sources: [
      { layer: "embedded", directory: null },
      { layer: "project", directory: ".plimsoll/packs/git" },
    ],
  });
  expect(shown.text).toContain("A\ttab.");
  const minimal = await sandbox.call(["packs", "show", "git", "--verbosity", "minimal"]);
  expect(minimal.stdout).toMatch(/^from +embedded, then project \.plimsoll\/packs\/git$/m);
  expect(minimal.stdout).toContain("\n--- text at minimal ---\n");
  expect(minimal.stdout).toContain("## Ours");
  expect(minimal.stdout).not.toContain("A\ttab.");
});

test("a pack that replaces another comes from its own layer alone", async () => {
  pack("git");
  const { sources, text } = await json("packs", "show", "git");
  expect(sources).toEqual([{ layer: "project", directory: ".plimsoll/packs/git" }]);
  expect(text).toBe("## git");
});

test("show says which pack drops it, and that a profile leaves it out", async () => {
  sandbox.write("package.json", "{}");
  const [frontend, minimal] = await Promise.all([
    sandbox.call(["packs", "show", "node", "--profile", "frontend"]),
    sandbox.call(["packs", "show", "node", "--profile", "minimal"]),
  ]);
  expect(frontend.stdout).toContain('profile   frontend: dropped, "typescript" comes before it and replaces it\n');
  expect(minimal.stdout).toContain('profile   minimal: left out (profile "minimal" has base packs only)\n');
});

test("unknown packs and profiles are wrong usage", async () => {
  expect(await sandbox.run(["packs", "show", "nod"])).toEqual({
    ...{ code: 2, stdout: "", stderr: 'plimsoll: unknown pack "nod". Did you mean "node"?\n' },
  });
  expect(await sandbox.call(["packs", "list", "--profile", "fronted"])).toMatchObject({
    ...{ code: 2, stdout: "", stderr: 'plimsoll: unknown profile "fronted". Did you mean "frontend"?\n' },
  });
});

test("a pack's text cannot steer the terminal", async () => {
  pack("ours", 'name: "red \\e[31m"\ndetect: [absent]\n', "## Ours \u001b[31m\n");
  for (const command of [["list"], ["show", "ours"]]) {
    const { stdout } = await sandbox.call(["packs", ...command]);
    expect(stdout).toContain("\\x1b[31m");
    expect(stdout).not.toContain("\u001b");
  }
});

test("lint reports the loader's problems and the rules' findings, with file and line, and exits 1 on errors", async () => {
  pack("alpha", "weight: 3\noverlaps:\n  - git\n  - beta\n", "# Alpha\n\n<!-- verbosity:detail -->\n");
  pack("beta", "overlaps: [alpha, gitt]\n");
  pack("gamma", "wieght: 3\n");
  sandbox.write(".plimsoll/profiles/web.yaml", "id: web\npacks:\n  - { id: alpha }\n  - weight: 3\n    id: nope\n");
  const { code, stdout, stderr } = await sandbox.call(["packs", "lint", "--json"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  const found = JSON.parse(stdout);
  expect(Object.keys(found[0])).toEqual(expect.arrayContaining(["file", "line", "severity", "rule", "message"]));
  expect(Object.keys(found[0])).toHaveLength(5);
  const places = found.map((each: Record<string, string>) => `${each.file}:${each.line} ${each.severity} ${each.rule}`);
  expect(places).toEqual([
    ".plimsoll/packs/alpha/context.md:1 warning heading-level",
    ".plimsoll/packs/alpha/context.md:3 warning empty-tier",
    ".plimsoll/packs/alpha/pack.yaml:5 error overlap-cycle",
    ".plimsoll/packs/beta/pack.yaml:2 error unknown-overlap",
    ".plimsoll/packs/gamma/pack.yaml:2 error unknown-key",
    ".plimsoll/profiles/web.yaml:5 error unknown-profile-pack",
  ]);
  const text = await sandbox.run(["packs", "lint"]);
  expect(text).toMatchObject({ code: 1, stderr: "" });
  expect(text.stdout).toContain("pack.yaml:5: error overlap-cycle: overlaps form a circle: alpha → beta → alpha.");
  expect(text.stdout).toMatch(/ packs: 4 errors, 2 warnings\n$/);
});

test("lint warns of near-duplicates of shipped packs and of oversize, and warnings leave the exit code 0", async () => {
  const git = await json("packs", "show", "git");
  pack("ours", "base: true\n", `${git.text}\n${"Many words. ".repeat(200)}\n`);
  const { code, stdout } = await sandbox.call(["packs", "lint", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout).map((each: Record<string, string>) => [each.file, each.rule])).toEqual([
    [".plimsoll/packs/ours/context.md", "oversize"],
    [".plimsoll/packs/ours/pack.yaml", "near-duplicate"],
  ]);
});

test("lint looks at the texts of every language", async () => {
  pack("ours");
  sandbox.write(".plimsoll/packs/ours/context.de.md", "## Unser\n<!-- verbosity:detial -->\nText\n");
  expect(await json("packs", "lint")).toMatchObject([
    { file: ".plimsoll/packs/ours/context.de.md", line: 2, rule: "text", severity: "warning" },
  ]);
});

test("a directory without content is an error of lint, a file that YAML cannot be read from too", async () => {
  expect(await json("packs", "lint", "--content", "gone")).toMatchObject([{ file: "gone", rule: "no-content" }]);
  pack("ours");
  writeFileSync(join(sandbox.cwd, ".plimsoll/packs/ours/pack.yaml"), "id: [ours\n");
  const { code, stdout } = await sandbox.call(["packs", "lint"]);
  expect(code).toBe(1);
  expect(stdout).toContain(".plimsoll/packs/ours/pack.yaml:");
  expect(stdout).toContain("malformed-yaml");
});

test("what ships with the program and the examples have no errors", async () => {
  expect(await json("packs", "lint", "--content", join(root, "content"))).toEqual([]);
  for (const name of ["sap", "company"]) {
    expect(await sandbox.call(["packs", "lint", "--content", join(root, "examples", name)])).toMatchObject({
      code: 0,
    });
  }
});

test("lint names the files of a pack that plimsoll does not read, and those that it reads", async () => {
  pack("ours", "", "## Ours\n\nText.\n");
  for (const name of ["mcp.yaml", "hook.yaml", "tips.md", "resources.yaml", "tools.yaml"])
    sandbox.write(`.plimsoll/packs/ours/${name}`, "");
  expect(await json("packs", "lint")).toEqual([
    {
      ...{ file: ".plimsoll/packs/ours/pack.yaml", line: 1, severity: "warning", rule: "unused-file" },
      message: expect.stringMatching(
        /^these files of the pack are not read: hook\.yaml, mcp\.yaml, resources\.yaml, tips\.md, tools\.yaml\. .*pack\.yaml, .*skills\/, commands\/ and agents\/\.$/,
      ),
    },
  ]);
  // They are no problem for a run.
  expect((await sandbox.call(["inject", "--dry-run"])).stderr).not.toContain("not read");
});

test("lint names a misspelt file and the one that was meant", async () => {
  pack("ours", "", "## Ours\n\nText.\n");
  for (const name of ["hooks.yaml", "contxt.md", "tips.yaml", "notes.txt", "README.md", "context.de.md"])
    sandbox.write(`.plimsoll/packs/ours/${name}`, "");
  sandbox.write(".plimsoll/packs/ours/skills/review/SKILL.md", "---\ndescription: Reviews code\n---\n");
  sandbox.write(".plimsoll/packs/ours/skils/review/SKILL.md", "");
  const found = await json("packs", "lint");
  expect(found.map(({ file, rule }: { file: string; rule: string }) => `${file} ${rule}`)).toEqual([
    ".plimsoll/packs/ours/contxt.md unknown-file",
    ".plimsoll/packs/ours/pack.yaml unused-file",
  ]);
  expect(found[0].message).toContain('is not read. Did you mean "context.md"?');
  expect(found[1].message).toMatch(
    /^these files of the pack are not read: hooks\.yaml, notes\.txt, skils\/, tips\.yaml\. /,
  );
});
