import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { changeFile } from "./change-file.ts";
import { listRuns, recordChanges } from "./change-journal.ts";
import { undoRun } from "./undo-changes.ts";

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

test("records nothing where nothing changes, and keeps the last 20 runs", async () => {
  writeFileSync(join(root, "a.md"), "same\n");
  await record(() => put("a.md", "same\n"));
  expect(await listRuns(place())).toEqual([]);
  for (let count = 0; count < 22; count++) await record(() => put("a.md", `${count}\n`));
  const runs = await listRuns(place());
  expect(runs).toHaveLength(20);
  expect(runs[0]!.changes[0]!.before).toBe("20\n");
});
