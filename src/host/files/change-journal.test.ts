import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { changeFile } from "./change-file.ts";
import { listRuns, recordChanges, undoRun, withJournal } from "./change-journal.ts";

let folder: string;
let root: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plimsoll-undo-"));
  root = join(folder, "project");
  mkdirSync(root);
});
afterEach(() => rmSync(folder, { recursive: true }));

const place = () => ({ root, env: { HOME: folder } });
const put = (name: string, content: string | undefined) =>
  changeFile(join(root, name), { ...place(), change: () => content });
const record = (action: () => Promise<unknown>) => recordChanges({ command: "test", ...place() }, action);
const undo = async (options = {}) => {
  const [run] = await listRuns(place());
  return undoRun(run!, { env: place().env, dryRun: false, force: false, ...options });
};

test("gives back the bytes and modes of changed, deleted and created files", async () => {
  const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0x61, 0x0d, 0x0a, 0xff]);
  writeFileSync(join(root, "AGENTS.md"), bytes);
  writeFileSync(join(root, "gone.md"), "old\n");
  chmodSync(join(root, "gone.md"), 0o640);
  mkdirSync(join(root, "empty"));
  await record(async () => {
    await put("AGENTS.md", undefined);
    await put("AGENTS.md", "block\n");
    await put("gone.md", undefined);
    await put("empty/new/deep.md", "new\n");
  });
  expect((await undo()).map(({ state }) => state)).toEqual(["removed", "restored", "restored"]);
  expect(readFileSync(join(root, "AGENTS.md"))).toEqual(bytes);
  expect(readFileSync(join(root, "gone.md"), "utf8")).toBe("old\n");
  expect(statSync(join(root, "gone.md")).mode & 0o777).toBe(0o640);
  // A folder that was there before stays, though it is empty.
  expect(readdirSync(join(root, "empty"))).toEqual([]);
  expect(await listRuns(place())).toEqual([]);
});

test("leaves a file that a person changed since, and keeps a copy of it with force", async () => {
  writeFileSync(join(root, "a.md"), "before\n");
  await record(async () => {
    await put("a.md", "written\n");
    await put("b.md", "written\n");
  });
  writeFileSync(join(root, "a.md"), "mine\n");
  const [b, a] = await undo();
  expect([b?.state, a?.state, a?.problem?.message]).toEqual(["removed", "refused", "was changed since, so it stays"]);
  expect(readFileSync(join(root, "a.md"), "utf8")).toBe("mine\n");
  expect((await undo({ force: true, dryRun: true })).map(({ state }) => state)).toEqual(["unchanged", "restored"]);
  await undo({ force: true });
  expect(readFileSync(join(root, "a.md"), "utf8")).toBe("before\n");
  expect(readFileSync(join(root, "a.md.bak"), "utf8")).toBe("mine\n");
});

test("a run that failed can be taken back, and its records are private", async () => {
  const failing = record(async () => {
    await put("a.md", "written\n");
    throw new Error("killed");
  });
  await expect(failing).rejects.toThrow("killed");
  const [run] = await listRuns(place());
  expect(run).toMatchObject({ command: "test", state: "running" });
  for (const name of readdirSync(run!.folder)) expect(statSync(join(run!.folder, name)).mode & 0o777).toBe(0o600);
  await undo();
  expect(existsSync(join(root, "a.md"))).toBe(false);
});

test("a run that fails is handed over, so that its caller can take it back", async () => {
  const action = async () => {
    await put("a.md", "written\n");
    throw new Error("failed");
  };
  const onFailure = (run: Parameters<typeof undoRun>[0]) => undoRun(run, { ...place(), dryRun: false, force: false });
  await expect(recordChanges({ command: "test", ...place(), onFailure }, action)).rejects.toThrow("failed");
  expect(existsSync(join(root, "a.md"))).toBe(false);
  expect(await listRuns(place())).toEqual([]);
});

test("a repository cannot bring records, and records of another project or place are not used", async () => {
  await record(() => put("a.md", "written\n"));
  const [run] = await listRuns(place());
  expect(run!.folder.startsWith(join(folder, ".local/state/plimsoll/undo/"))).toBe(true);
  const file = join(run!.folder, "000001.json");
  const change = JSON.parse(readFileSync(file, "utf8"));
  for (const planted of [
    { ...change, path: join(folder, "elsewhere.md") },
    { ...change, path: `${root}/../elsewhere.md` },
    { ...change, root: folder },
  ]) {
    writeFileSync(file, JSON.stringify(planted));
    expect(await listRuns(place())).toEqual([]);
  }
  writeFileSync(file, "{");
  expect((await listRuns(place()))[0]!.changes).toEqual([]);
  writeFileSync(file, JSON.stringify(change));
  expect(await listRuns(place())).toHaveLength(1);
  // Another project at the same path.
  renameSync(root, `${root}-old`);
  mkdirSync(root);
  expect(await listRuns(place())).toEqual([]);
});

test("only one command of a project records or takes back at a time", async () => {
  await withJournal(place(), async () => {
    await expect(withJournal(place(), async () => {})).rejects.toThrow("another command of this project");
  });
  await withJournal(place(), async () => {});
});

test("old records are removed, also those of other projects", async () => {
  const others = join(folder, ".local/state/plimsoll/undo/0123456789abcdef");
  const [old, recent] = ["20200101000000000-0123abcd", "29990101000000000-0123abcd"];
  for (const name of [old, recent]) mkdirSync(join(others, name), { recursive: true });
  await record(() => put("a.md", "written\n"));
  expect(readdirSync(others)).toEqual([recent]);
});

test("a temporary file and a folder of a killed run go too", async () => {
  await record(() => put("new/a.md", "written\n"));
  rmSync(join(root, "new/a.md"));
  writeFileSync(join(root, "new/.a.md.plimsoll-999999999-1.tmp"), "half");
  expect((await undo()).map(({ state }) => state)).toEqual(["unchanged"]);
  expect(existsSync(join(root, "new"))).toBe(false);
});

test("folders go too if a killed run made only the outer ones", async () => {
  await record(() => put("outer/inner/a.md", "written\n"));
  rmSync(join(root, "outer/inner"), { recursive: true });
  await undo();
  expect(readdirSync(root)).toEqual([]);
});

test("records nothing where nothing changes, and keeps the last 20 runs", async () => {
  writeFileSync(join(root, "a.md"), "same\n");
  await record(() => put("a.md", "same\n"));
  expect(await listRuns(place())).toEqual([]);
  for (let count = 0; count < 22; count++) await record(() => put("a.md", `${count}\n`));
  const runs = await listRuns(place());
  expect(runs).toHaveLength(20);
  expect(runs[0]!.changes[0]!.before).toBe("20\n");
});
