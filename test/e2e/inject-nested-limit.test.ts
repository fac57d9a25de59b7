/** A nested file that breaks a tool's limit by itself: it is named, and the rest is written. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
  project.write(".plimsoll/config.yaml", "tools: [agents-md, claude-code]\npacks: { built_in: [] }\n");
  project.pack("own", "## Own\n\n- Always use tabs.\n");
});
afterEach(() => project.remove());

const long = "123456789\n".repeat(4000);

test("the root's file gets the block, and inject names the nested file", async () => {
  project.write("AGENTS.md", "# Team\n");
  project.write("services/api/AGENTS.md", long);
  const { code, stdout, stderr } = await project.call(["inject"]);
  expect(project.read("AGENTS.md")).toContain("- Always use tabs.");
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("AGENTS.md (") });
  expect(stderr).toContain(
    "services/api/AGENTS.md: even without the block a tool finds 40,007 of 32,768 bytes there, so it loses the end. Shorten the file",
  );
  expect(project.read("services/api/AGENTS.md")).toBe(long);
});

test("--check still fails for that folder, and only for that folder", async () => {
  project.write("services/api/AGENTS.md", long);
  await project.call(["inject"]);
  const { code, stdout } = await project.call(["inject", "--check", "--json"]);
  expect(code).toBe(1);
  const states = (JSON.parse(stdout) as { state: string; path: string }[]).filter(({ state }) => state !== "current");
  expect(states).toEqual([expect.objectContaining({ state: "over the limit", path: "services/api/AGENTS.md" })]);
});

test("other nested files get their packs", async () => {
  project.pack("api", "## API\n\n- Version every route.\n", "globs: ['services/**', 'libs/**']\nnested: true");
  project.write("services/AGENTS.md", long);
  project.write("libs/AGENTS.md", "# Libraries\n");
  const { code, stderr } = await project.call(["inject"]);
  expect(project.read("libs/AGENTS.md")).toContain("- Version every route.");
  expect(project.read("AGENTS.md")).toContain("- Always use tabs.");
  expect(project.read("services/AGENTS.md")).toBe(long);
  expect(code).toBe(1);
  expect(stderr).toContain("40,");
});

test("a folder that is full, but within the limit, still keeps its text", async () => {
  const full = "123456789\n".repeat(3276);
  project.write("services/api/AGENTS.md", full);
  const { code, stderr } = await project.call(["inject"]);
  expect(code).toBe(1);
  expect(stderr).toContain("services/api");
  expect(() => project.read("AGENTS.md")).toThrow("ENOENT");
});

test("a root's file that breaks the limit by itself gets no block", async () => {
  project.write("AGENTS.md", long);
  expect((await project.call(["inject", "--tool", "agents-md"])).code).toBe(1);
  expect(project.read("AGENTS.md")).toBe(long);
});
