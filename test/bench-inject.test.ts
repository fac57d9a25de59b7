import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { PACK_BYTES, PACKS, writeManyPacks } from "../bench/inject/many-packs.ts";
import { measureCommands } from "../bench/inject/measure-commands.ts";
import { goalsOf } from "../bench/inject/render-report.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bench-inject-"));
  folders.push(folder);
  return folder;
}

describe("commands", () => {
  const node = process.execPath;
  const options = { rounds: 1, env: process.env };
  const noOp = { name: "nothing", node, args: ["-e", "0"], cwd: tmpdir() };

  it("are compared with the first", { tags: ["deep"] }, () => {
    const slow = { ...noOp, name: "slow", args: ["-e", "setTimeout(() => {}, 300)"] };
    const [first, second] = measureCommands([noOp, slow], options);
    expect(first).toMatchObject({ name: "nothing", ratio: 1 });
    expect(second!.milliseconds).toBeGreaterThan(300);
    expect(second!.ratio).toBeCloseTo(second!.milliseconds / first!.milliseconds);
  });

  it("that fail, or do not write what they should, are no measurement", () => {
    const failing = { ...noOp, name: "failing", args: ["-e", "process.exit(3)"] };
    expect(() => measureCommands([failing], options)).toThrow("failing ended with 3");
    const idle = { ...noOp, name: "idle", leaves: join(tmpdir(), "no-such-file") };
    expect(() => measureCommands([idle], options)).toThrow("idle did not write");
  });
});

it("the many packs are as large as they are said to be", { tags: ["deep"] }, () => {
  const folder = temporaryFolder();
  writeManyPacks(folder, "mixed");
  const packs = readdirSync(join(folder, "packs"));
  expect(packs).toHaveLength(PACKS);
  for (const id of [packs[0]!, packs.at(-1)!]) {
    const { size } = statSync(join(folder, "packs", id, "context.md"));
    expect(Math.abs(size - PACK_BYTES)).toBeLessThan(PACK_BYTES * 0.02);
  }
});

it("a goal without its peer is left out, one that is missed says so", () => {
  const row = (name: string, ratio: number) => ({ name, ratio, milliseconds: ratio * 10 });
  const own = ["embedded", "own"].map((which) => row(`plimsoll inject, ${which} packs, first`, 4));
  const commands = [row("plimsoll --version", 1.2), ...own];
  expect(goalsOf(commands, []).map(({ met }) => met)).toEqual([true, false, false, false]);
  const beside = goalsOf([...commands, row("ruler apply, first", 6)], []);
  expect(beside.slice(4)).toMatchObject([
    { measured: 1.5, met: true },
    { measured: 1.5, met: true },
  ]);
});
