import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

/** Runs the command until `act` is through, which can ask what it said on standard error and on standard output. */
async function whileWatching(
  args: readonly string[],
  act: (errors: () => string, results: () => string) => Promise<void>,
) {
  const child = spawn(process.execPath, [mainFile, "inject", "--watch", ...args], {
    cwd: project.cwd,
    env: project.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let errors = "";
  let results = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    results += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  try {
    await until(() => errors.includes("stop with Ctrl-C") || child.exitCode !== null);
    await act(
      () => errors,
      () => results,
    );
  } finally {
    child.kill("SIGINT");
  }
  expect(await exited).toEqual([130, null]);
}

function writePack(directory: string, text: string): void {
  const folder = join(directory, "packs/own");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "pack.yaml"), "id: own\nname: own\ndescription: d\ntags: [t]\nweight: 500\n");
  writeFileSync(join(folder, "context.md"), `## Own\n\n${text}\n`);
}

const shows = (path: string, text: string) => () => existsSync(path) && readFileSync(path, "utf8").includes(text);

test("the user's folder may be made later", { tags: ["deep"], timeout: 60_000 }, async () => {
  const file = join(project.home, ".claude/CLAUDE.md");
  await whileWatching(["--global", "--tool", "claude-code"], async (errors) => {
    await until(shows(file, "plimsoll:start"));
    writePack(join(project.home, ".config/plimsoll"), "First.");
    await until(shows(file, "First."));
    writePack(join(project.home, ".config/plimsoll"), "Second.");
    await until(shows(file, "Second."));
    expect(errors()).not.toContain("ENOENT");
  });
});

test("a company's directory and what --content names are watched", {
  timeout: 60_000,
}, async () => {
  const beside = (name: string) => join(dirname(project.cwd), name);
  writePack(beside("company"), "Company one.");
  writePack(beside("content"), "Content.");
  project.put(".plimsoll/config.yaml", "company: { source: ../company }\n");
  const file = join(project.cwd, "CLAUDE.md");
  await whileWatching(["--tool", "claude-code", "--content", "../content", "--trust"], async () => {
    await until(shows(file, "Company one."));
    writePack(beside("company"), "Company two.");
    await until(shows(file, "Company two."));
    mkdirSync(join(beside("content"), "packs/more"));
    writeFileSync(join(beside("content"), "packs/more/context.md"), "## More\n\nMore text.\n");
    writeFileSync(join(beside("content"), "packs/more/pack.yaml"), "id: more\nweight: 400\nbase: true\n");
    await until(shows(file, "More text."));
  });
});

test("nothing is written while .plimsoll is gone, as on another branch, and it goes on when it is back", {
  tags: ["deep"],
  timeout: 60_000,
}, async () => {
  project.pack("own", "## Own\n\nFirst.\n");
  const [folder, away] = [join(project.cwd, ".plimsoll"), join(project.cwd, "../away")];
  const file = join(project.cwd, "CLAUDE.md");
  await whileWatching(["--tool", "claude-code"], async (errors) => {
    await until(shows(file, "First."));
    renameSync(folder, away);
    await until(() => errors().includes(".plimsoll was removed; nothing is written until it is back"));
    // The other branch has its own file.
    writeFileSync(file, "# Other branch\n");
    await sleep(1_000);
    expect(readFileSync(file, "utf8")).toBe("# Other branch\n");
    writePack(away, "Second.");
    renameSync(away, folder);
    await until(shows(file, "Second."));
    expect(errors()).toContain(".plimsoll is back");
  });
});

test("with --json each run is one line, a mistake and a pause too", { tags: ["deep"], timeout: 60_000 }, async () => {
  project.pack("own", "## Own\n\nFirst.\n");
  const folder = join(project.cwd, ".plimsoll");
  await whileWatching(["--tool", "claude-code", "--json"], async (_, results) => {
    const values = () =>
      results()
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    const has = (expected: object) => () => values().some((value) => isMatch(value, expected));
    await until(has([{ adapter: "claude-code", written: true }]));
    project.pack("own", "## Own\n\nFirst.\n", "wieght: 1");
    await until(has({ error: { code: "invalid_content" } }));
    rmSync(folder, { recursive: true });
    await until(has({ paused: true, folder: ".plimsoll" }));
  });
});

function isMatch(value: unknown, expected: object): boolean {
  try {
    expect(value).toMatchObject(expected);
    return true;
  } catch {
    return false;
  }
}
