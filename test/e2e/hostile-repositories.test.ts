import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  buildHostile,
  type HostileRepository,
  hostileNames,
  outsideSecret,
  ownSecret,
} from "./hostile-repositories.ts";
import { mainFile } from "./run-plimsoll.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";

/** One of each way in: the others vary them, and each takes a second or two. */
const triedNames = isDeep
  ? hostileNames
  : [
      "a folder laid out as a bare repository",
      "clean and smudge filters",
      "a work tree at an absolute path",
      "secrets, and links to them",
    ];

const script = new URL("hostile-tools.mjs", import.meta.url).pathname;

/** CI installs it. */
const strace = ["/usr/bin/strace", "/bin/strace"].find((path) => existsSync(path));

interface Answer {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly code?: string;
  readonly message?: string;
  readonly items: readonly unknown[];
  readonly warnings?: readonly string[];
}

interface Outcome extends HostileRepository {
  readonly answers: readonly Answer[];
  readonly text: string;
  /** Whole paths; empty where there is no strace. */
  readonly programs: readonly string[];
}

const outcomes = new Map<string, Outcome>();
afterAll(() => {
  for (const { remove } of outcomes.values()) remove();
});

/** Everything over one repository, in a process of its own, once for all tests. */
function tryCase(name: string): Outcome {
  const known = outcomes.get(name) ?? tryTools(name);
  outcomes.set(name, known);
  return known;
}

function tryTools(name: string): Outcome {
  const repository = buildHostile(name);
  const home = mkdtempSync(join(tmpdir(), "plimsoll-home-"));
  const log = join(home, "programs");
  const watched = strace === undefined ? [] : [strace, "-f", "-qq", "--seccomp-bpf", "-e", "trace=execve", "-o", log];
  const [program = "", ...args] = [...watched, process.execPath, script, repository.root];
  try {
    const env = { PATH: process.env.PATH, HOME: home };
    const text = execFileSync(program, args, { env, encoding: "utf8", maxBuffer: 1e8 });
    const answers = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Answer);
    return { ...repository, answers, text, programs: strace === undefined ? [] : programsIn(log) };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Commands list files and read conventions: other cases are about what only tools ask git. */
const commandCases = [
  "a folder laid out as a bare repository",
  "a file system monitor",
  "a work tree at an absolute path",
  "links that lead out",
  "secrets, and links to them",
];

function writePlan(root: string): void {
  mkdirSync(join(root, "plan"));
  writeFileSync(join(root, "plan/nebula.toml"), '[nebula]\nname = "plan"\n');
  writeFileSync(join(root, "plan/a.md"), '+++\nid = "a"\ntitle = "A"\n+++\nDo it.\n');
}

function programsIn(log: string): string[] {
  const lines = readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => / = 0$/.test(line));
  return [...new Set(lines.flatMap((line) => /execve\("([^"]+)"/.exec(line)?.[1] ?? []))];
}

describe.skipIf(process.platform === "win32")("every tool and a scan over a hostile repository", () => {
  test.each(triedNames)("%s: no program runs, and no secret comes out", (name) => {
    const outcome = tryCase(name);
    expect(existsSync(outcome.mark), "the repository's program ran").toBe(false);
    expect(outcome.text).not.toContain(outsideSecret);
    expect(outcome.text).not.toContain(ownSecret);
    const others = outcome.programs.filter((path) => !/\/(node|git|rg)$|\/git-core\//.test(path));
    expect(others).toEqual([]);
  });

  test("each says why git was not run", () => {
    const codes = (name: string) => {
      const { answers } = tryCase(name);
      const asked = answers.filter(({ name: tool, args }) => tool.startsWith("vcs_") && args.path === undefined);
      return [...new Set(asked.map(({ code }) => code))];
    };
    expect(codes("a folder laid out as a bare repository")).toEqual(["not_a_repository"]);
    expect(codes("a work tree at an absolute path")).toEqual(["refused_repository"]);
    if (isDeep) expect(codes("a .git file that names another repository")).toEqual(["refused_repository"]);
    expect(codes("clean and smudge filters")).toContain(undefined);
    const { answers } = tryCase("a work tree at an absolute path");
    expect(answers.find(({ name }) => name === "project_files")?.warnings).toEqual([
      "git does not run in this repository: its work tree does not hold this folder (core.worktree).",
    ]);
  });

  test("a submodule with settings of its own is looked into without them, one with a work tree elsewhere is not", {
    tags: ["deep"],
  }, () => {
    const status = (name: string) => tryCase(name).answers.find((answer) => answer.name === "vcs_status");
    const lib = { path: "lib", unstaged: "modified", submodule: "modified files" };
    expect(status("a submodule with settings of its own")?.items).toContainEqual(lib);
    const { items, warnings } = status("a submodule whose work tree is elsewhere")!;
    expect(items).not.toContainEqual(lib);
    expect(warnings).toEqual([
      'Changes inside the submodule "lib" are not shown: its work tree does not hold this folder (core.worktree).',
    ]);
  });

  const commands = [
    "run --dry-run --agent-command true x",
    "compose --snapshot",
    "snapshot",
    "nebula apply plan --dry-run --agent-command true",
  ];
  // hostile-commands.test.ts has others of them over the same repository in every run.
  test.each(isDeep ? commands : commands.slice(0, 1))(
    "%s runs no program of the repository's and shows no secret",
    (line) => {
      for (const name of isDeep ? commandCases : commandCases.slice(-1)) {
        const repository = buildHostile(name);
        const home = mkdtempSync(join(tmpdir(), "plimsoll-home-"));
        onTestFinished(() => {
          repository.remove();
          rmSync(home, { recursive: true, force: true });
        });
        writePlan(repository.root);
        const env = { PATH: process.env.PATH, HOME: home };
        const { stdout, stderr, status } = spawnSync(process.execPath, [mainFile, ...line.split(" ")], {
          cwd: repository.root,
          env,
          encoding: "utf8",
        });
        expect(status, `${name}: ${stderr}`).toBe(0);
        expect(existsSync(repository.mark), name).toBe(false);
        expect(stdout + stderr).not.toMatch(new RegExp(`${outsideSecret}|${ownSecret}`));
      }
    },
  );
});
