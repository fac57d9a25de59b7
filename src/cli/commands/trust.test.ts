import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../run-cli.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "plimsoll-trust-"));
  mkdirSync(join(base, "project/.plimsoll"), { recursive: true });
  writeFileSync(join(base, "project/.plimsoll/config.yaml"), "company: { source: ../company }\n");
});
afterEach(() => rmSync(base, { recursive: true }));

/** At a terminal, where a person types `answer`. */
async function typed(args: readonly string[], answer: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  stdin.end(answer);
  const seen: Record<"stdout" | "stderr", string[]> = { stdout: [], stderr: [] };
  const stream = (name: "stdout" | "stderr") => ({ write: (text: string) => seen[name].push(text) });
  const code = await runCli(args, {
    env: { HOME: join(base, "home") },
    stdin,
    stdinKind: "other",
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    cwd: () => join(base, "project"),
  });
  const isTrusted = existsSync(join(base, "home/.local/state/plimsoll/trust.json"));
  return { code, stdout: seen.stdout.join(""), stderr: seen.stderr.join(""), isTrusted };
}

test("a person at a terminal sees the settings and is asked, and anything but a yes records nothing", async () => {
  for (const answer of ["n\n", "\n", "", "yea\n"]) {
    const { code, stdout, stderr, isTrusted } = await typed(["trust"], answer);
    expect({ code, isTrusted }).toEqual({ code: 1, isTrusted: false });
    expect(stdout).toContain(".plimsoll/config.yaml:1  company");
    expect(stderr).toMatch(/Trust .*project with this\? \[y\/N\]\n.*nothing was recorded/);
  }
  expect(await typed(["trust"], "y\n")).toMatchObject({
    code: 0,
    isTrusted: true,
    stdout: expect.stringMatching(/\nTrusted .*project with 1 setting\.\n$/),
  });
});

test.each(["--yes", "--json"])("nothing is asked with %s", async (option) => {
  expect(await typed(["trust", option], "n\n")).toMatchObject({ code: 0, isTrusted: true, stderr: "" });
});

test("--list and --revoke cannot be used together", async () => {
  expect(await typed(["trust", "--list", "--revoke"], "")).toMatchObject({ code: 2, isTrusted: false });
});
