import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
let bin: string;
beforeEach(() => {
  project = createProject();
  bin = join(project.home, "bin");
  mkdirSync(bin);
});
afterEach(() => project.remove());

/** Nothing of the machine on PATH: neither AI tools nor clipboards. */
const only = (path: string) => ({ env: { PATH: path } });
const inHome = (path: string) => readFileSync(join(project.home, path), "latin1");
function putHome(path: string, text: string): void {
  mkdirSync(dirname(join(project.home, path)), { recursive: true });
  writeFileSync(join(project.home, path), text);
}

function fakeCommand(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
}

test("files under HOME are written for the tools that are there, the project is left alone", async () => {
  fakeCommand("claude", "exit 0");
  putHome(".gemini/GEMINI.md", "Mine.\n");
  project.put("CLAUDE.md", "Project.\n");
  const run = await project.run(["inject", "--global", "-q"], only(bin));
  expect(run).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(inHome(".claude/CLAUDE.md")).toMatch(/^<!-- plimsoll:start:context /);
  expect(inHome(".gemini/GEMINI.md")).toMatch(/^Mine\.\n\n<!-- plimsoll:start:context /);
  const again = await project.call(["inject", "--global"], only(bin));
  expect(again.stdout).toContain("~/.claude/CLAUDE.md (claude-code): already current");
  expect(project.tree()).toEqual({ "CLAUDE.md": "Project.\n" });
  expect(await project.call(["inject", "--scope", "global", "--check"], only(bin))).toMatchObject({
    code: 0,
  });
  await project.call(["inject", "--global", "--uninstall", "-q"], only(bin));
  expect(inHome(".gemini/GEMINI.md")).toBe("Mine.\n");
  expect(existsSync(join(project.home, ".claude/CLAUDE.md"))).toBe(false);
});

test("the user's layer counts for files under HOME only, the project's for the project only, as do its notes", async () => {
  putHome(".config/plimsoll/packs/personal/pack.yaml", "id: personal\nname: P\ndescription: d\ntags: [t]\n");
  putHome(".config/plimsoll/packs/personal/context.md", "## Personal\n\nMine.\n");
  project.pack("team", "## Team\n\nOurs.\n");
  project.put(".plimsoll/notes.yaml", "notes: [Freeze until Friday.]\n");
  project.put("package.json", "{}");
  await project.call(["inject", "--tool", "claude-code", "-q"]);
  await project.call(["inject", "--tool", "claude-code", "-q", "--global"]);
  const [here, home] = [project.read("CLAUDE.md"), inHome(".claude/CLAUDE.md")];
  expect(here).toMatch(/## Current Context\n\n- Freeze until Friday\.\n[\s\S]*Language: JavaScript[\s\S]*## Team/);
  expect(here).not.toContain("## Personal");
  expect(home).toContain("## Personal");
  expect(home).not.toMatch(/## Team|Freeze|Language: /);
});

test("a text for the clipboard comes between two rules where there is no clipboard", async () => {
  const run = await project.call(["inject", "--global", "--tool", "claude-ai", "-q"], only(bin));
  expect(run.code).toBe(0);
  const rule = "-".repeat(40);
  const [before, text = "", after] = run.stdout.split(`${rule}\n`);
  expect(before).toBe("");
  expect(text).toMatch(/^# Developer Context\n/);
  expect(text).not.toContain("plimsoll:start");
  expect(after).toContain("claude.ai");
});

test("without a clipboard every text is shown; with one, only the first goes there and the others are told", async () => {
  const both = ["inject", "--global", "--tool", "claude-ai,gemini", "-q"];
  const shown = await project.call(both, only(bin));
  expect(shown.stdout.match(/^-{40}$/gm)).toHaveLength(4);
  fakeCommand("xclip", `cat > "${project.home}/clip"`);
  const copied = await project.call(both, only(`${bin}:/usr/bin:/bin`));
  expect(copied.stdout).toMatch(/^gemini: not copied, the clipboard holds claude-ai; .*--tool gemini$/m);
  expect(inHome("clip")).toMatch(/^# Developer Context\n/);
});

test("a clipboard program on PATH receives the text, and nothing else", async () => {
  fakeCommand("xclip", `echo "$@" > "${project.home}/arguments"\ncat > "${project.home}/clip"`);
  const path = `${bin}:/usr/bin:/bin`;
  const run = await project.run(["inject", "--global", "--tool", "claude-ai", "-q"], only(path));
  expect(run).toMatchObject({ code: 0, stderr: "" });
  expect(inHome("arguments")).toBe("-selection clipboard\n");
  expect(inHome("clip")).toMatch(/^# Developer Context\n[\s\S]*\n$/);
  expect(run.stdout).toMatch(/^claude-ai: copied [\d,]+ bytes with xclip\n/);
  const copied = Number(/copied ([\d,]+) bytes/.exec(run.stdout)?.[1]?.replace(",", ""));
  expect(copied).toBe(Buffer.byteLength(inHome("clip"), "latin1"));
  writeFileSync(join(project.home, "clip"), "");
  const dry = await project.call(["inject", "--global", "--tool", "claude-ai", "--dry-run"], only(path));
  expect(dry.stdout).toMatch(/^claude-ai: would copy /m);
  expect(inHome("clip")).toBe("");
});

test("a clipboard program that fails gives way to the next one, at last to the rules", async () => {
  fakeCommand("wl-copy", "exit 1");
  fakeCommand("xclip", "cat > /dev/null; exit 1");
  const run = await project.call(["inject", "--global", "--tool", "claude-ai", "-q"], only(`${bin}:/usr/bin:/bin`));
  expect(run.code).toBe(0);
  expect(run.stdout).toMatch(/^-{40}\n# Developer Context\n/);
});

test("ChatGPT gets at most 1,400 bytes that say where the rest is, and the whole text is in a file", async () => {
  fakeCommand("xclip", `cat > "${project.home}/clip"`);
  const chatgpt = ["inject", "--global", "--tool", "chatgpt", "-q"];
  const path = `${bin}:/usr/bin:/bin`;
  const run = await project.call([...chatgpt, "--stats"], only(path));
  expect(run).toMatchObject({ code: 0, stderr: "" });
  const clip = inHome("clip");
  expect(clip.length).toBeLessThanOrEqual(1_400);
  expect(clip).toMatch(/ask for that file when you need more\.\n$/);
  expect(clip).not.toMatch(/^#|\*\*|<!--/m);
  expect(run.stdout).toMatch(/^chatgpt +\S.* 1400 bytes +minimal +OK/m);
  const whole = inHome("plimsoll-chatgpt-context.md");
  expect(whole).toMatch(/^<!-- plimsoll:owns sha256=[0-9a-f]{16} -->\n# Developer Context\n/);
  for (const heading of ["## Security", "## SQL", "## Canonical Patterns", "## Known Errors"]) {
    expect(whole).toContain(`\n${heading}\n`);
  }
  const again = await project.call([...chatgpt, "--json"], only(path));
  expect(JSON.parse(again.stdout)[0]).toMatchObject({ adapter: "chatgpt", written: false });
  await project.call(["inject", "--global", "--uninstall", "-q"], only(path));
  expect(existsSync(join(project.home, "plimsoll-chatgpt-context.md"))).toBe(false);
});

test("with the packs of SAP, ChatGPT gets the core of a pack within its budget, and the export file is written", async () => {
  fakeCommand("xclip", `cat > "${project.home}/clip"`);
  const content = fileURLToPath(new URL("../../examples/sap", import.meta.url));
  const args = [
    "inject",
    "--global",
    "--tool",
    "chatgpt",
    "--content",
    content,
    "--profile",
    "cap-developer",
    "--json",
  ];
  const run = await project.call(args, only(`${bin}:/usr/bin:/bin`));
  expect(run.code).toBe(0);
  expect(JSON.parse(run.stdout)[0]).toMatchObject({ packs: ["base", "cap"], budget: { value: 1_400 }, written: true });
  const clip = inHome("clip");
  expect(Buffer.byteLength(clip, "latin1")).toBeLessThanOrEqual(1_400);
  expect(clip).toContain("CAP turns models written in CDS into a database schema and OData services");
  expect(clip).toMatch(/The rest is in sap-chatgpt-context\.md: ask for that file when you need more\.\n$/);
  const whole = inHome("sap-chatgpt-context.md");
  expect(whole).toMatch(/^<!-- plimsoll:owns sha256=/);
  for (const heading of ["# SAP CAP (Cloud Application Programming Model)", "# SAP Developer Ecosystem"])
    expect(whole).toContain(heading);
});

test("in a project clipboard and exports are left out, and one line says how to get them", async () => {
  const run = await project.call(["inject", "--tool", "chatgpt,claude-ai,claude-code"]);
  expect(run.code).toBe(0);
  expect(run.stderr.match(/^plimsoll: not for a project.*$/gm)).toEqual([
    "plimsoll: not for a project: chatgpt,claude-ai. Run plimsoll inject --global --tool chatgpt,claude-ai",
  ]);
  expect(Object.keys(project.tree())).toEqual(["CLAUDE.md"]);
});

test("a file in the place of the export is kept, and copied before --force replaces it", async () => {
  putHome("plimsoll-chatgpt-context.md", "Mine.\n");
  const run = await project.call(["inject", "--global", "--tool", "chatgpt", "-q"], only(bin));
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("plimsoll did not write this file") });
  expect(inHome("plimsoll-chatgpt-context.md")).toBe("Mine.\n");
  await project.call(["inject", "--global", "--tool", "chatgpt", "-q", "--force"], only(bin));
  expect(inHome("plimsoll-chatgpt-context.md")).toContain("plimsoll:owns");
  expect(inHome("plimsoll-chatgpt-context.md.bak")).toBe("Mine.\n");
});

test("a tool without a file in this scope is told, not passed over in silence", async () => {
  const run = await project.call(["inject", "--global", "--tool", "amazon-q"], only(bin));
  expect(run.stderr).toBe("plimsoll: amazon-q has no file under HOME\n");
  // It reads AGENTS.md in a project, and nothing of that name under HOME.
  const cursor = await project.call(["inject", "--global", "--tool", "cursor"], only(bin));
  expect(cursor.stderr).toBe("plimsoll: cursor has no file under HOME\n");
  expect(existsSync(join(project.home, ".agents"))).toBe(false);
});
