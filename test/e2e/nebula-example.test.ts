/** The example runs as its README says, with the built command and without a network. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

const folder = fileURLToPath(new URL("../../examples/nebula/", import.meta.url));

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

/** Each command of the README with what it says that it prints. */
function shownRuns(): { command: string; printed: string }[] {
  const blocks = readFileSync(`${folder}README.md`, "utf8").matchAll(
    /^```\n\$ plimsoll (.*)\n([\s\S]*?)\n```$/gm,
  );
  return [...blocks].map(([, command = "", printed = ""]) => ({ command, printed }));
}

/** Times and the day are of one run, and so is which of two phases that run together ends first. */
function timeless(text: string): string[] {
  const lines = text
    .trim()
    .replaceAll(/ +/g, " ")
    .replaceAll(/\d+\.\d s/g, "0.0 s")
    .replaceAll(/\d{4}-\d\d-\d\d/g, "DATE")
    .split("\n");
  const isProgress = (line: string) => line.startsWith("plimsoll: ");
  return [...lines.filter(isProgress).sort(), ...lines.filter((line) => !isProgress(line))];
}

test("every command of the example prints what its README shows", async () => {
  const runs = shownRuns();
  expect(runs).toHaveLength(5);
  for (const { command, printed } of runs) {
    const line = `exec "${process.execPath}" "${mainFile}" ${command} 2>&1`;
    const { stdout } = await runProcess(["/bin/sh", "-c", line], { cwd: folder, env: sandbox.env });
    expect(timeless(stdout), command).toEqual(timeless(printed));
  }
});
