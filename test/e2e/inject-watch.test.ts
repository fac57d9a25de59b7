import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";
import { mainFile } from "./run-plimsoll.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

async function until(holds: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 15_000; !holds(); ) {
    if (performance.now() > deadline) throw new Error("waited in vain");
    await sleep(20);
  }
}

test("a changed pack is injected again, a mistake is told and mended, and an interrupt ends it with 130", {
  timeout: 60_000,
}, async () => {
  project.pack("own", "## Own\n\nFirst.\n");
  const child = spawn(process.execPath, [mainFile, "inject", "--watch", "--tool", "claude-code"], {
    cwd: project.cwd,
    env: project.env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const holds = (text: string) => () =>
    existsSync(join(project.cwd, "CLAUDE.md")) && project.read("CLAUDE.md").includes(text);
  try {
    await until(holds("First."));
    expect(errors).toContain("stop with Ctrl-C");
    project.pack("own", "## Own\n\nSecond.\n");
    await until(holds("Second."));
    project.pack("own", "## Own\n\nThird.\n", "wieght: 1");
    await until(() => errors.includes('unknown key "wieght"'));
    expect(project.read("CLAUDE.md")).toContain("Second.");
    project.pack("own", "## Own\n\nThird.\n");
    await until(holds("Third."));
  } finally {
    child.kill("SIGINT");
  }
  expect(await exited).toEqual([130, null]);
  expect(await project.run(["inject", "--check", "--tool", "claude-code"])).toMatchObject({ code: 0 });
});
