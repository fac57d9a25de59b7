import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** Runs `init` at a terminal where a person answers each question with the next line. */
async function answer(...lines: string[]): Promise<{ code: number; stderr: string; chosen: string | undefined }> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  let stderr = "";
  const code = await runCli(["init"], {
    env: { HOME: join(cwd, "home"), TMPDIR: tmpdir() },
    stdin,
    stdinKind: "other",
    stdout: { write: () => {} },
    stderr: {
      write: (text) => {
        stderr += text;
        // Every question ends its line with one of these.
        if (/[:?\]]\n$/.test(text)) stdin.write(`${lines.shift() ?? ""}\n`);
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

test("where instruction files exist, init asks whether to move their text into packs", async () => {
  writeFileSync(join(cwd, "AGENTS.md"), "Use pnpm in this repository.\n");
  const { code, stderr, chosen } = await answer("y");
  expect({ code, chosen }).toEqual({ code: 0, chosen: "" });
  expect(stderr).toContain("AGENTS.md has rules already. Move them into packs");
  expect(readFileSync(join(cwd, ".plimsoll/packs/agents/context.md"), "utf8")).toBe("Use pnpm in this repository.\n");
  expect(existsSync(join(cwd, ".plimsoll/packs/project"))).toBe(false);
});

test("without a yes, init leaves the text where it is and asks for packs", async () => {
  writeFileSync(join(cwd, "AGENTS.md"), "Use pnpm in this repository.\n");
  expect(await answer("no", "git")).toMatchObject({ code: 0, chosen: "git" });
  expect(readFileSync(join(cwd, "AGENTS.md"), "utf8")).toBe("Use pnpm in this repository.\n");
  expect(existsSync(join(cwd, ".plimsoll/packs/project"))).toBe(true);
});
