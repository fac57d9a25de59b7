import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSandbox, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = createSandbox();
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await sandbox.run(["completion", shell]);
    expect(code).toBe(0);
    sandbox.write(shell, stdout);
  }
});
afterAll(() => sandbox.remove());

const has = (shell: string) => spawnSync(shell, ["-c", "exit 0"]).status === 0;
const inSandbox = () => ({ cwd: sandbox.cwd, env: sandbox.env });

async function completeInBash(line: string, setup = ":"): Promise<string[]> {
  const script = `${setup}; source ./bash; COMP_LINE=$1; COMP_POINT=\${#1}; _plimsoll; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await runProcess(["bash", "--norc", "-c", script, "bash", line], inSandbox());
  expect(stderr).toBe("");
  return stdout.split("\n").filter(Boolean);
}

async function completeInFish(line: string): Promise<string[]> {
  const { stdout, stderr } = await runProcess(
    ["fish", "--no-config", "-c", 'source ./fish; complete -C "$argv"', line],
    inSandbox(),
  );
  expect(stderr).toBe("");
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((each) => each.split("\t")[0] ?? "")
    .sort();
}

describe.skipIf(!has("bash"))("bash (skipped where it is not installed)", () => {
  test("commands, options and arguments complete", async () => {
    expect(await completeInBash("plimsoll ")).toEqual([
      ...["init", "inject", "import", "setup", "undo", "packs", "notes", "sync", "audit", "count"],
      ...[
        "trim",
        "serve",
        "validate",
        "replay",
        "bill",
        "mcp",
        "plugin",
        "recall",
        "statusline",
        "guard",
        "session",
        "store",
      ],
      ...["compose", "snapshot", "fabric", "run", "nebula"],
      ...["trust", "config", "completion"],
      "help",
    ]);
    expect(await completeInBash("plimsoll --json cou")).toEqual(["count"]);
    expect(await completeInBash("plimsoll help com")).toEqual(["compose", "completion"]);
    expect(await completeInBash("plimsoll count --c")).toEqual(["--counter"]);
    expect(await completeInBash("plimsoll config --c")).toEqual([]);
    expect(await completeInBash("plimsoll completion ")).toEqual(["bash", "zsh", "fish"]);
    expect(await completeInBash("plimsoll trim --policy r")).toEqual(["rfc", "rfc-headroom"]);
    expect(await completeInBash("plimsoll mcp un")).toEqual(["uninstall"]);
    expect(await completeInBash("plimsoll count con")).toEqual([]);
  });

  test("counters complete across the colon that bash cuts at, and inside a list", async () => {
    expect(await completeInBash("plimsoll count --counter ex")).toEqual(["exact:o200k", "exact:cl100k"]);
    expect(await completeInBash("plimsoll count --counter exact:o")).toEqual(["o200k"]);
    expect(await completeInBash("plimsoll count --counter=exact:o")).toEqual(["o200k"]);
    expect(await completeInBash("plimsoll count --counter=au")).toEqual(["auto"]);
    expect(await completeInBash("plimsoll count --counter bytes/4,aut")).toEqual(["bytes/4,auto"]);
    expect(await completeInBash("plimsoll count --counter exact:o", "COMP_WORDBREAKS=' ='")).toEqual(["exact:o200k"]);
  });
});

describe.skipIf(!has("fish"))("fish (skipped where it is not installed)", () => {
  test("commands, options, values and files complete", async () => {
    expect(await completeInFish("plimsoll co")).toEqual(["completion", "compose", "config", "count"]);
    expect(await completeInFish("plimsoll count --co")).toEqual(["--counter"]);
    expect(await completeInFish("plimsoll count --counter bytes/4,ex")).toEqual([
      "bytes/4,exact:cl100k",
      "bytes/4,exact:o200k",
    ]);
    expect(await completeInFish("plimsoll completion ")).toEqual(["bash", "fish", "zsh"]);
    expect(await completeInFish("plimsoll count fi")).toEqual(["fish"]);
    expect(await completeInFish("plimsoll config ")).toEqual([]);
  });
});

describe.skipIf(!has("zsh"))("zsh (skipped where it is not installed)", () => {
  test("the script loads and offers commands, options and values", async () => {
    // Completion functions only run inside the line editor: compadd, _describe and _arguments are asked for what they get.
    const script = `
      source() { builtin source "$@" }
      compdef() { print "compdef $*" }
      _describe() { print -l -- "\${(@P)4}" }
      _arguments() { print -rl -- "\${@[3,-1]}"; state=command }
      _sequence() { print -l -- "\${@[3,-1]}" }
      source ./zsh; _plimsoll; _plimsoll_count; _plimsoll_count_value_counter`;
    const { code, stdout, stderr } = await runProcess(["zsh", "-f", "-c", script], inSandbox());
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.split("\n");
    expect(lines[0]).toBe("compdef _plimsoll plimsoll");
    expect(lines).toContain("completion:print the completion script of a shell");
    expect(lines).toContain("*--counter=[how tokens are counted]:counter:_plimsoll_count_value_counter");
    expect(lines).toContain("(--quiet -q)-q[no notes and no progress, only errors]");
    expect(lines).toContain("*:file:_files");
    expect(lines).toContain("estimate:claude-5");
  });
});

test.each(["bash", "zsh", "fish"].filter(has))("%s accepts the script's syntax", async (shell) => {
  const { code, stderr } = await runProcess([shell, "-n", join(sandbox.cwd, shell)], inSandbox());
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});

test("with --json the script is a value", async () => {
  const { stdout } = await sandbox.run(["completion", "fish", "--json"]);
  expect(JSON.parse(stdout)).toEqual({
    shell: "fish",
    script: expect.stringContaining("complete -c plimsoll"),
  });
});
