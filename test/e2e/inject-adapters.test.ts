/** Adapters of a higher layer that hold only what they change. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

interface Row {
  readonly adapter: string;
  readonly budget: { readonly value: number; readonly unit: string } | null;
  readonly verbosity: string;
  readonly paths: readonly string[];
}

async function rowOf(adapter: string, ...args: string[]): Promise<Row | undefined> {
  const { stdout, stderr, code } = await project.call(["inject", "--dry-run", "--json", "--tool", adapter, ...args]);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return (JSON.parse(stdout) as Row[]).find((row) => row.adapter === adapter);
}

function adapter(id: string, ...lines: string[]): void {
  project.put(`.plimsoll/adapters/${id}.yaml`, `${[`id: ${id}`, ...lines].join("\n")}\n`);
}

describe("a partial adapter", () => {
  test("changes only the keys that it holds", async () => {
    adapter("claude-code", "max_tokens: 2000", "verbosity: standard");
    expect(await rowOf("claude-code")).toMatchObject({
      ...{ budget: { value: 2000, unit: "tokens" }, verbosity: "standard", paths: ["CLAUDE.md"] },
    });
  });

  test("keeps the dated limits of the lower layer", async () => {
    project.speakEveryLanguage();
    adapter("claude-code", "verbosity: full");
    const { stderr } = await project.call(["inject", "--dry-run", "--tool", "claude-code"]);
    expect(stderr).toContain("the advised limit is 200");
    adapter("claude-code", "limits: []");
    const without = await project.call(["inject", "--dry-run", "--tool", "claude-code"]);
    expect(without.stderr).not.toContain("the advised limit is 200");
  });

  test("replaces a list as a whole", async () => {
    adapter("claude-code", "targets:", "  - { scope: project, path: docs/CLAUDE.md }");
    expect((await rowOf("claude-code"))?.paths).toEqual(["docs/CLAUDE.md"]);
  });

  test("replaces a budget in bytes with its own in tokens", async () => {
    project.put("../home/.config/plimsoll/adapters/chatgpt.yaml", "id: chatgpt\nmax_tokens: 900\n");
    expect((await rowOf("chatgpt", "--global"))?.budget).toEqual({ value: 900, unit: "tokens" });
  });

  test("changes an adapter of the company's layer, which changed a built-in one", async () => {
    project.put("company/adapters/claude-code.yaml", "id: claude-code\nmax_bytes: 9000\nverbosity: minimal\n");
    project.put(".plimsoll/config.yaml", "company: { source: company }\n");
    adapter("claude-code", "verbosity: full");
    const row = await rowOf("claude-code", "--trust");
    expect(row).toMatchObject({ budget: { value: 9000, unit: "bytes" }, verbosity: "full", paths: ["CLAUDE.md"] });
  });

  test("of content without adapters changes a built-in one", async () => {
    project.put("content/packs/p/pack.yaml", "id: p\nname: P\ndescription: d\ntags: [t]\n");
    project.put("content/packs/p/context.md", "## P\n\nText.\n");
    adapter("claude-code", "verbosity: minimal");
    expect(await rowOf("claude-code", "--content", "content")).toMatchObject({ verbosity: "minimal" });
    expect(await rowOf("gemini-cli", "--content", "content")).toMatchObject({ verbosity: "full" });
  });

  test("of content that is used alone changes a built-in one, and a whole adapter there stands alone", async () => {
    project.put("content/packs/p/pack.yaml", "id: p\nname: P\ndescription: d\ntags: [t]\n");
    project.put("content/packs/p/context.md", "## P\n\nText.\n");
    project.put("content/adapters/chatgpt.yaml", "id: chatgpt\nverbosity: standard\n");
    const global = ["--global", "--content", "content"];
    expect(await rowOf("chatgpt", ...global)).toMatchObject({ verbosity: "standard", budget: { value: 1400 } });
    expect(await rowOf("gemini-cli", ...global)).toMatchObject({ verbosity: "full" });
    project.put("content/adapters/chatgpt.yaml", "id: chatgpt\ntype: clipboard-export\n");
    expect(await rowOf("chatgpt", ...global)).toMatchObject({ verbosity: "full", budget: null });
    expect((await project.call(["inject", "--tool", "gemini-cli", ...global])).code).toBe(2);
  });

  test("of an unknown id is an error that names what is missing", async () => {
    adapter("claud-code", "max_tokens: 2000");
    const { code, stderr } = await project.call(["inject", "--dry-run"]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      '.plimsoll/adapters/claud-code.yaml:1: "type" is missing, and no lower layer has an adapter "claud-code" to change. Did you mean "claude-code"?',
    );
  });

  test("with a wrong value is an error with its line", async () => {
    adapter("claude-code", "verbosity: standard", "max_tokens: many");
    const { code, stderr } = await project.call(["inject", "--dry-run"]);
    expect({ code, named: stderr.includes(".plimsoll/adapters/claude-code.yaml:3: ") }).toEqual({
      code: 1,
      named: true,
    });
  });

  test("installs the MCP server with the place that it changes", async () => {
    adapter("claude-code", "mcp_config: { path: .claude/mcp.json }");
    const { code, stdout, stderr } = await project.call(["mcp", "install", "--tool", "claude-code"]);
    expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
    expect(project.read(".claude/mcp.json")).toContain("mcpServers");
  });
});

test("the mode append is an error with its line and the modes that exist", async () => {
  adapter("own", "type: file-inject", "targets:", "  - scope: project", "    path: OWN.md", "    mode: append");
  const { code, stderr } = await project.call(["inject", "--dry-run", "--tool", "own"]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    '.plimsoll/adapters/own.yaml:6: "targets[0].mode" must be one of replace-section, replace-file, not "append"',
  );
});
