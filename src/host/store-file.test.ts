import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../../test/make-repository.ts";
import { loadConfig } from "./config/load-config.ts";
import { storeFile } from "./store-file.ts";

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-store-file-")));
  for (const folder of ["home/.config/plimsoll", "project/.plimsoll", "project/src"])
    mkdirSync(join(base, folder), { recursive: true });
  makeRepository(join(base, "project"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** As seen from a folder of the project. */
async function find(named?: string, env: Record<string, string> = {}): Promise<string> {
  const place = { cwd: join(base, "project/src"), env: { HOME: join(base, "home"), ...env } };
  return storeFile(named, { ...place, config: await loadConfig(place) });
}

const configure = (folder: string, store: string) =>
  writeFileSync(join(base, folder, "config.yaml"), `store: ${store}\n`);

test("without a word it is the user's own", async () => {
  expect(await find()).toBe(join(base, "home/.local/state/plimsoll/state.db"));
});

test("a file on the command line is relative to the current folder and has priority", async () => {
  configure("home/.config/plimsoll", "mine.db");
  expect(await find("other.db", { PLIMSOLL_STORE: "third.db" })).toBe(join(base, "project/src/other.db"));
});

test("PLIMSOLL_STORE comes before the configuration; empty it says nothing", async () => {
  configure("home/.config/plimsoll", "mine.db");
  expect(await find(undefined, { PLIMSOLL_STORE: "/tmp/third.db" })).toBe("/tmp/third.db");
  expect(await find(undefined, { PLIMSOLL_STORE: "" })).toBe(join(base, "home/mine.db"));
});

test("a project never names it, trusted or not", async () => {
  configure("project/.plimsoll", "cache/mine.db");
  expect(await find(undefined, { PLIMSOLL_TRUST: "1" })).toBe(await find());
  expect(await find()).toBe(join(base, "home/.local/state/plimsoll/state.db"));
});

test("a file of the user's configuration is the same in all projects", async () => {
  configure("home/.config/plimsoll", "mine.db");
  expect(await find()).toBe(join(base, "home/mine.db"));
  configure("home/.config/plimsoll", "~/stores/mine.db");
  expect(await find()).toBe(join(base, "home/stores/mine.db"));
});

test("the address of a database is used as it is", async () => {
  configure("home/.config/plimsoll", "postgres://localhost/plimsoll");
  expect(await find()).toBe("postgres://localhost/plimsoll");
});

test("an address that no driver understands is refused, with the line that names it", async () => {
  configure("home/.config/plimsoll", "redis://localhost/plimsoll");
  await expect(find()).rejects.toMatchObject({
    code: "invalid_config",
    message: expect.stringMatching(/^no store has addresses with redis:\/\/ \(user .*config\.yaml:1\)$/),
  });
});
