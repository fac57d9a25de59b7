import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../run-cli.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "plimsoll-init-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

/** Runs `init` at a terminal where a person answers with this line. */
async function answer(line: string): Promise<{ code: number; stderr: string; chosen: string | undefined }> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  stdin.end(`${line}\n`);
  let stderr = "";
  const code = await runCli(["init"], {
    env: { HOME: join(cwd, "home"), TMPDIR: tmpdir() },
    stdin,
    stdinKind: "other",
    stdout: { write: () => {} },
    stderr: {
      write: (text) => {
        stderr += text;
      },
    },
    cwd: () => cwd,
  });
  const config = code === 0 ? readFileSync(join(cwd, ".plimsoll/config.yaml"), "utf8") : "";
  return { code, stderr, chosen: /^packs: \{ built_in: \[(.*)\] \}/m.exec(config)?.[1] };
}

test("at a terminal, init asks for the built-in packs, and Enter means none", async () => {
  const { code, stderr, chosen } = await answer("");
  expect({ code, chosen }).toEqual({ code: 0, chosen: "" });
  expect(stderr).toContain("Which built-in packs do you want?");
});

test("takes names with commas or spaces between them", async () => {
  expect(await answer(" git, typescript  base ")).toMatchObject({ code: 0, chosen: "git, typescript, base" });
});

test("refuses an unknown name", async () => {
  expect(await answer("gti")).toMatchObject({ code: 2, chosen: undefined });
});
