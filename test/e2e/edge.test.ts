/** The doors that need no disk, bundled for Workers and browsers, run where there is no Node: in a context without Node's globals,
 *  and in Chromium, at /usr/bin/chromium or where CHROMIUM says. `npm run accept:edge` runs them in workerd, Bun and Deno. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { type OutputChunk, rolldown } from "rolldown";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("edge-program.mjs", import.meta.url));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const expected: { runDoors(): Promise<string>; countExactly(): Promise<unknown> } = await import(
  /* @vite-ignore */ program
);

test("the doors run where there is no Node, with the same results", { timeout: 60_000 }, async () => {
  const own = { TextEncoder, TextDecoder, URL, Request, Response, Headers, ReadableStream, TransformStream, crypto };
  const context = createContext({ ...own, setTimeout, clearTimeout, structuredClone });
  expect(runInContext("[typeof process, typeof Buffer, typeof require]", context)).toEqual([
    "undefined",
    "undefined",
    "undefined",
  ]);
  runInContext(await bundleProgram(), context);
  expect(await runInContext("program.runDoors()", context)).toBe(await expected.runDoors());
});

test("a bundle for Workers has no ranks of exact counters, and says so", { timeout: 60_000 }, async () => {
  const code = await bundleProgram();
  expect(code).not.toContain("o200kTokens");
  const context = createContext({ TextEncoder, TextDecoder });
  runInContext(code, context);
  expect(await runInContext("program.countExactly()", context)).toBe("unknown_counter");
  expect(await expected.countExactly()).toBeGreaterThan(100);
});

test.runIf(existsSync(executablePath))(
  "the doors run in Chromium, with the same results",
  { timeout: 60_000 },
  async () => {
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--headless"] });
    const page = await browser.newPage();
    await page.addScriptTag({ content: await bundleProgram() });
    const results = await page.evaluate("Promise.all([program.runDoors(), program.countExactly()])");
    await browser.close();
    expect(results).toEqual([await expected.runDoors(), "unknown_counter"]);
  },
);

test.each(["anthropic", "openai", "ai-sdk", "fetch", "history", "tokens"])(
  "plimsoll/%s is at most 60 KB in a Worker before its first call, and needs nothing of Node",
  async (door) => {
    const build = await rolldown({
      input: fileURLToPath(import.meta.resolve(`plimsoll/${door}`)),
      platform: "browser",
      resolve: { conditionNames: ["workerd", "worker", "browser"] },
    });
    const { output } = await build.generate({ minify: true });
    await build.close();
    const chunks = new Map(output.map((each) => [each.fileName, each as OutputChunk]));
    const reached = new Set([output[0].fileName]);
    for (const name of reached) for (const each of chunks.get(name)?.imports ?? []) reached.add(each);
    const needed = [...chunks.values()].flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
    expect(needed.filter((name) => !chunks.has(name))).toEqual([]);
    const code = [...reached].map((name) => chunks.get(name)?.code).join("");
    expect(gzipSync(code).length).toBeLessThanOrEqual(60_000);
  },
);

/** One script without imports, as for a Worker. */
async function bundleProgram(): Promise<string> {
  const build = await rolldown({
    input: program,
    platform: "browser",
    resolve: { conditionNames: ["workerd", "worker", "browser"] },
  });
  const { output } = await build.generate({ format: "iife", name: "program", codeSplitting: false, minify: true });
  await build.close();
  return output[0].code;
}
