/** Another process, such as an agent that may write only in the project, replaces a folder of it by a link that leads
 *  out, again and again, while commands write there. Nothing outside may be made, changed or removed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, type FSWatcher, mkdirSync, readdirSync, watch, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { changeFile, copyTree, openFolder, removeEmptyFolders, removeTree } from "../../src/host/index.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const swapper = fileURLToPath(new URL("./folder-swapper.mjs", import.meta.url));

let sandbox: Sandbox;
let base: string;
let outside: string;
let watchers: FSWatcher[];
let changesOutside: number;
let child: ChildProcess | undefined;

beforeEach(() => {
  sandbox = createSandbox();
  base = dirname(sandbox.cwd);
  outside = join(base, "outside");
  changesOutside = 0;
  watchers = [];
});
afterEach(async () => {
  for (const watcher of watchers) watcher.close();
  if (child?.exitCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  sandbox.remove();
});

interface Race {
  /** The folder of the project that is swapped. */
  readonly folder: string;
  /** What is at its other place: files that must not change, and folders that must not go, with a slash at the end. */
  readonly outside: readonly string[];
  /** What the other process makes in the folder if a step removed it. `-` for not making it again. @default [] */
  readonly remade?: readonly string[];
  /** Returns whether something was written. */
  readonly step: (round: number) => Promise<boolean>;
  readonly milliseconds: number;
}

interface Outcome {
  /** How often a step changed something outside, also for a moment. */
  escaped: number;
  done: number;
  refused: number;
}

async function race({ folder, outside: entries, remade = [], step, milliseconds }: Race): Promise<Outcome> {
  const path = join(sandbox.cwd, folder);
  for (const made of [path, join(base, "aside"), outside]) mkdirSync(made, { recursive: true });
  for (const entry of entries) {
    mkdirSync(dirname(join(outside, `${entry}.`)), { recursive: true });
    if (!entry.endsWith("/")) writeFileSync(join(outside, entry), "theirs\n");
  }
  const folders = readdirSync(outside, { recursive: true, withFileTypes: true }).filter((each) => each.isDirectory());
  for (const each of [outside, ...folders.map(({ parentPath, name }) => join(parentPath, name))]) {
    watchers.push(watch(each, () => changesOutside++));
  }
  const words = [swapper, String(milliseconds + 20_000), path, outside, join(base, "aside"), ...remade];
  child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout!, "data");
  const outcome: Outcome = { escaped: 0, done: 0, refused: 0 };
  const end = performance.now() + milliseconds;
  for (let round = 0; performance.now() < end; round += 1) {
    const before = changesOutside;
    outcome[(await step(round)) ? "done" : "refused"] += 1;
    await immediate();
    if (changesOutside > before) outcome.escaped += 1;
  }
  return outcome;
}

function expectInside(outcome: Outcome): void {
  expect(outcome.escaped).toBe(0);
  // Without a refusal, the two processes have not met.
  expect(outcome.refused).toBeGreaterThan(0);
}

// Elsewhere Node cannot name the entries of an open folder, and a moment remains: docs/trust.md.
const raceTest = test.runIf(process.platform === "linux");

raceTest("changeFile makes, changes and deletes files in the root only", { timeout: 60_000 }, async () => {
  const outcome = await race({
    folder: ".github",
    outside: ["AGENTS.md", "deep/AGENTS.md", "deep/er/"],
    milliseconds: deep ? 10_000 : 700,
    async step(round) {
      const path = join(sandbox.cwd, round % 2 === 0 ? ".github/AGENTS.md" : ".github/deep/er/AGENTS.md");
      const text = round % 6 < 4 ? `${round}\n` : undefined;
      try {
        const { written } = await changeFile(path, { root: sandbox.cwd, env: sandbox.env, change: () => text });
        if (text === undefined) await removeEmptyFolders(path, sandbox.cwd);
        return written;
      } catch {
        return false;
      }
    },
  });
  expectInside(outcome);
});

const manyNames = Array.from({ length: 40 }, (_, index) => `file${index}`);
const succeeds = (action: Promise<unknown>): Promise<boolean> =>
  action.then(
    () => true,
    () => false,
  );

raceTest("removeTree deletes nothing behind a link", { tags: ["deep"], timeout: 60_000 }, async () => {
  const { escaped, done, refused } = await race({
    folder: "work/src",
    outside: manyNames,
    remade: manyNames,
    milliseconds: deep ? 10_000 : 2_000,
    async step() {
      while (!existsSync(join(sandbox.cwd, "work/src"))) await immediate();
      return succeeds(removeTree(join(sandbox.cwd, "work")));
    },
  });
  expect(escaped).toBe(0);
  expect(done + refused).toBeGreaterThan(10);
});

raceTest("copyTree writes nothing behind a link", { tags: ["deep"], timeout: 60_000 }, async () => {
  mkdirSync(join(base, "from/work/src"), { recursive: true });
  for (const name of manyNames) writeFileSync(join(base, "from/work/src", name), "ours");
  const step = async () => {
    await removeTree(join(sandbox.cwd, "work"));
    const [from, to] = [join(base, "from"), sandbox.cwd].map((path) => openFolder(path, { root: path })!);
    await copyTree("work", { from: from!, to: to! }).finally(() => {
      from!.close();
      to!.close();
    });
  };
  const { escaped, done, refused } = await race({
    folder: "work/src",
    outside: ["theirs"],
    remade: ["-"],
    milliseconds: deep ? 10_000 : 2_000,
    step: () => succeeds(step()),
  });
  expect(escaped).toBe(0);
  expect(done + refused).toBeGreaterThan(10);
});

interface CommandRace extends Omit<Race, "step" | "milliseconds"> {
  readonly files?: Readonly<Record<string, string>>;
  /** Commands that run in turn. */
  readonly commands: readonly (readonly string[])[];
}

const commandRaces: readonly CommandRace[] = [
  {
    folder: ".github",
    outside: ["copilot-instructions.md"],
    commands: [
      ["inject", "--tool", "github-copilot"],
      ["inject", "--tool", "github-copilot", "--uninstall"],
    ],
  },
  {
    folder: ".plimsoll/packs/claude",
    outside: ["context.md", "pack.yaml"],
    files: { "CLAUDE.md": "# Rules\n\nUse tabs.\n" },
    commands: [["import", "--force"]],
  },
  { folder: ".plimsoll", outside: ["config.yaml", "packs/project/context.md"], commands: [["init"]] },
  {
    folder: ".plimsoll",
    outside: ["notes.yaml"],
    commands: [
      ["notes", "add", "A note"],
      ["notes", "clear"],
    ],
  },
  {
    folder: ".cursor",
    outside: ["mcp.json"],
    commands: [
      ["mcp", "install", "--tool", "cursor"],
      ["mcp", "uninstall", "--tool", "cursor"],
    ],
  },
  {
    folder: ".opencode",
    outside: ["plugin/", "plugins/"],
    commands: [
      ["plugin", "install", "opencode", "--scope", "project"],
      ["plugin", "uninstall", "opencode", "--scope", "project"],
    ],
  },
];

raceTest.each(commandRaces.map((each) => [each.commands[0]!.slice(0, 2).join(" "), each.folder, each] as const))(
  "%s writes in the root only while %s is swapped",
  { tags: ["deep"], timeout: 60_000 },
  async (_command, _folder, { files = {}, commands, ...place }) => {
    for (const [path, text] of Object.entries(files)) sandbox.write(path, text);
    const outcome = await race({
      ...place,
      milliseconds: deep ? 8_000 : 2_000,
      async step(round) {
        const { code } = await sandbox.call(commands[round % commands.length]!);
        return code === 0;
      },
    });
    expectInside(outcome);
  },
);
