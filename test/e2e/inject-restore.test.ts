import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const markers = "<!-- plimsoll:start:context sha256=0123456789abcdef -->\nx\n<!-- plimsoll:end:context -->";
/** A file of a tool and what a person may have in it, as bytes; `undefined`: no such file. */
const rounds: Record<string, Record<string, string | undefined>> = {
  "line ends and marks": {
    "AGENTS.md": "# Mine\n\nText.\n",
    "CLAUDE.md": "# Mine\r\n\r\nText.\r\n",
    "GEMINI.md": "\xef\xbb\xbf# Mine\n",
    "QWEN.md": "# Mine\n\nNo final line break",
    "replit.md": "# Mine\r\nNo final line break",
    ".idx/airules.md": undefined,
    ".trae/rules/project_rules.md": "",
    ".github/copilot-instructions.md": "\xef\xbb\xbf",
  },
  "odd bytes and markers in code": {
    "AGENTS.md": `Like this:\n\n\`\`\`html\n${markers}\n\`\`\`\n`,
    "CLAUDE.md": `Like this:\r\n\r\n~~~~\r\n${markers}\r\n~~~~\r\nAfter`,
    "GEMINI.md": "caf\xe9 \xff\x80 latin-1\n",
    "QWEN.md": "# Mixed\r\nlines\nhere\r\n\n\n\n",
    "replit.md": "\n",
    ".idx/airules.md": "\xef\xbb\xbf\r\n",
    ".trae/rules/project_rules.md": "An open fence:\n```\ncode\n",
    ".github/copilot-instructions.md": "<!-- cursor:start:Rules -->\nx\n<!-- cursor:end:Rules -->\n \t",
  },
};
const tools = [
  "--tool",
  "agents-md,claude-code,gemini-cli,qwen-code,replit,firebase-studio,trae,github-copilot,cursor,kiro",
];

test.each(Object.entries(rounds))("inject and uninstall give the original bytes back: %s", async (_, files) => {
  project.keepOwnFiles();
  for (const [path, bytes] of Object.entries(files)) if (bytes !== undefined) project.put(path, bytes);
  chmodSync(join(project.cwd, "AGENTS.md"), 0o640);
  const before = project.tree();
  expect(await project.run(["inject", ...tools, "-q"])).toMatchObject({ code: 0, stderr: "" });
  for (const [path, bytes] of Object.entries(files)) {
    const file = project.read(path);
    expect(file.startsWith(bytes ?? "<!-- plimsoll:start:")).toBe(true);
    expect(file.match(/^(\xef\xbb\xbf)?<!-- plimsoll:start:context sha256=(?!0123)/gm), path).toHaveLength(1);
  }
  // Another content in between: what stands around a block is found again after it has changed.
  expect(await project.call(["inject", ...tools, "-q", "--verbosity", "minimal"])).toMatchObject({
    code: 0,
  });
  expect(await project.run(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0, stderr: "" });
  const after = project.tree();
  for (const [path, content] of Object.entries(after)) if (content === "(directory)") delete after[path];
  for (const [path, content] of Object.entries(before)) if (content === "(directory)") delete before[path];
  expect(after).toEqual(before);
  expect(statSync(join(project.cwd, "AGENTS.md")).mode & 0o777).toBe(0o640);
  expect((await project.call(["inject", "--uninstall"])).stdout).toBe("found nothing that Plimsoll wrote\n");
});

test.each([
  ["\n", "Before.\n", "After.\n"],
  ["\r\n", "Before.\r\n", "\r\nAfter, without an end"],
])("text that people add before and after the block stays byte for byte (%j)", async (end, before, after) => {
  const claude = ["--tool", "claude-code", "-q"];
  project.put("CLAUDE.md", before);
  await project.call(["inject", ...claude]);
  project.put("CLAUDE.md", `Top.${end}${end}${project.read("CLAUDE.md")}${after}`);
  expect(await project.call(["inject", ...claude, "--verbosity", "minimal"])).toMatchObject({ code: 0 });
  const file = project.read("CLAUDE.md");
  expect(file.startsWith(`Top.${end}${end}${before}${end}<!-- plimsoll:start:`)).toBe(true);
  expect(file.endsWith(`plimsoll:end:context -->${end}${after}`)).toBe(true);
  expect(
    file.split("\n").every((line) => line.endsWith("\r") === (end === "\r\n") || line === file.split("\n").at(-1)),
  ).toBe(true);
  await project.call(["inject", "--uninstall", ...claude]);
  expect(project.read("CLAUDE.md")).toBe(`Top.${end}${end}${before}${after}`);
});

test("uninstall takes only what is ours: edited blocks and files stay until forced, and a level is not minded", async () => {
  await project.call(["inject", "--tool", "claude-code,cursor,gemini-cli", "-q"]);
  project.put("CLAUDE.md", project.read("CLAUDE.md").replace("Maintained by", "Written by"));
  const cursor = `${project.read(".cursor/rules/plimsoll.mdc")}Mine.\n`;
  project.put(".cursor/rules/plimsoll.mdc", cursor);
  const run = await project.call(["inject", "--uninstall", "--verbosity", "minimal"]);
  expect(run).toMatchObject({ code: 1, stdout: "GEMINI.md: deleted\n" });
  expect(run.stderr).toMatch(/^plimsoll: CLAUDE\.md: the block was edited by hand.*--force/m);
  expect(run.stderr).toMatch(/^plimsoll: \.cursor\/rules\/plimsoll\.mdc: .*edited by hand.*--force/m);
  expect(project.read(".cursor/rules/plimsoll.mdc")).toBe(cursor);
  const dry = await project.call(["inject", "--uninstall", "--force", "--dry-run"]);
  expect(dry.stdout).toBe("CLAUDE.md: would delete\n.cursor/rules/plimsoll.mdc: would delete\n");
  expect(await project.call(["inject", "--uninstall", "--force", "-q"])).toMatchObject({ code: 0 });
  // What a person wrote is kept beside the file.
  expect(project.read(".cursor/rules/plimsoll.mdc.bak")).toBe(cursor);
  const left = Object.entries(project.tree()).filter(([, content]) => content.includes("plimsoll:start"));
  expect(left.map(([path]) => path)).toEqual(["CLAUDE.md.bak"]);
});
