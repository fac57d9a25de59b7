/** Tests what every tool must do for any call: return a result or a failure and never throw, read nothing outside of
 *  its root, change nothing, and return pages that together are the whole result. */
import { setMaxListeners } from "node:events";
import { cpSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type BudgetedTool, isFailure, type ToolArguments } from "../session/index.ts";
import type { ToolPlace } from "./run.ts";
import {
  addEntries,
  commit,
  createRepository,
  createTree,
  readResult,
  type WhenOver,
} from "./temporary-tree.contract.ts";

export interface ToolCase {
  create(place: ToolPlace): BudgetedTool;
  /** A call that returns several items in `sampleRepository`. */
  readonly args: ToolArguments;
}

const call = { signal: new AbortController().signal };

export function testTool(name: string, { create, args }: ToolCase): void {
  const open = (root: string): BudgetedTool => create({ root, env: process.env });

  describe(`the tool ${name}`, () => {
    const sample = sampleRepository(afterAll);

    it("describes itself and each parameter, offset and budget among them", () => {
      const { inputSchema, description, limitParameter, ...tool } = open("/");
      expect(tool.name).toBe(name);
      expect(description).toMatch(/\.$/);
      expect(Object.keys(inputSchema.properties)).toEqual(expect.arrayContaining(["offset", "budget"]));
      for (const property of Object.values(inputSchema.properties)) expect(property.description).toMatch(/\.$/);
      if (limitParameter !== undefined) expect(inputSchema.properties).toHaveProperty(limitParameter);
    });

    it("returns all items in pages of any size, and an empty page past the end", async () => {
      const tool = open(sample);
      const whole = await readResult(await tool.run(args, call));
      expect(whole.items.length).toBeGreaterThan(2);
      expect(whole.total).toBe(whole.items.length);
      for (const size of [1, whole.items.length - 1]) {
        const joined: unknown[] = [];
        for (let more = true; more; ) {
          const page = await readResult(await tool.run({ ...args, offset: joined.length }, call), size);
          expect(page).toMatchObject({ total: whole.total, offset: joined.length });
          expect(page.version).toBe(whole.version);
          joined.push(...page.items);
          more = page.more;
        }
        expect(joined).toEqual(whole.items);
      }
      const past = await readResult(await tool.run({ ...args, offset: 1e15 }, call));
      expect(past).toMatchObject({ items: [], offset: 1e15, more: false });
    });

    it("accepts null for missing parameters, and refuses unknown ones", async () => {
      const tool = open(sample);
      const whole = await readResult(await tool.run(args, call));
      const odd = { ...args, offset: "0", budget: null };
      expect((await readResult(await tool.run(odd, call))).items).toEqual(whole.items);
      for (const wrong of [{ offset: -1 }, { offset: 1.5 }, { offset: "x" }, { budget: 0 }, { patth: "." }]) {
        expect(await tool.run({ ...args, ...wrong }, call)).toMatchObject({ code: "invalid_argument" });
      }
    });

    it("shows nothing outside of its root, and none of git's own files", async () => {
      const secret = "an outsider's secret";
      const outside = createTree({ "secret.txt": `${secret}\n` });
      const root = createTree({});
      cpSync(sample, root, { recursive: true });
      addEntries(root, {
        "link.txt": { link: join(outside, "secret.txt") },
        "way out": { link: outside },
        circle: { link: "circle" },
        "to git": { link: ".git" },
      });
      const tool = open(root);
      if (!("path" in tool.inputSchema.properties)) throw new Error("every tool takes a path");
      for (const path of escapes(outside)) {
        const result = await tool.run({ ...args, path }, call);
        const seen = isFailure(result) ? result : await readResult(result);
        expect(JSON.stringify(seen), path).not.toContain(secret);
        expect(seen, path).toMatchObject({
          code: expect.stringMatching(/^(outside_root|refused_path|not_found|invalid_argument)$/),
        });
      }
    });

    it("treats a path that looks like an option or a pattern as a path", async () => {
      const tool = open(sample);
      for (const path of ["--help", "-e", "--output=made", ":(top)*", "*", "-", "--", "@{u}"]) {
        const result = await tool.run({ ...args, path }, call);
        const items = isFailure(result) ? [] : (await readResult(result)).items;
        expect(items, path).toEqual([]);
      }
      expect(readdirSync(sample)).not.toContain("made");
    });

    it("changes nothing in the tree or the repository", async () => {
      const before = timesOf(sample);
      await readResult(await open(sample).run(args, call));
      expect(timesOf(sample)).toEqual(before);
    });

    it("ends at once when it is cancelled, and soon when time is up", async () => {
      const tool = open(sample);
      const cancelled = await tool.run(args, { signal: AbortSignal.abort() });
      expect(cancelled).toMatchObject({ code: "cancelled" });
      const whole = await readResult(await tool.run(args, call));
      const late = await tool.run(args, { ...call, timeoutMs: 1 });
      if (isFailure(late)) {
        expect(late.code).toBe("timed_out");
        return;
      }
      const { items, more, warnings } = await readResult(late);
      // A fast machine may have finished already.
      if (more) expect(warnings).toContainEqual(expect.stringMatching(/^Stopped after 0\.001 s: /));
      else expect(items).toEqual(whole.items);
    });

    it("leaves no listener on a signal that outlives it", async () => {
      const tool = open(sample);
      const warnings: Error[] = [];
      const listen = (warning: Error) => warnings.push(warning);
      process.on("warning", listen);
      const { signal } = new AbortController();
      // Node warns from one listener more than this.
      setMaxListeners(3, signal);
      for (let count = 0; count < 5; count++) await readResult(await tool.run(args, { signal }), 1);
      await new Promise((resolve) => setImmediate(resolve));
      process.off("warning", listen);
      expect(warnings).toEqual([]);
    });
  });
}

/** Three commits, changes on top of them, and an ignored file. */
function sampleRepository(whenOver: WhenOver): string {
  const root = createRepository(
    {
      ".gitignore": "*.log\n",
      "src/store.ts": "import { open } from 'db';\n\nexport function createStore() {\n  return open();\n}\n",
      "src/main.ts": "createStore();\n",
      "docs/guide.md": "# Guide\n\nCall createStore first.\n",
    },
    whenOver,
  );
  addEntries(root, { "src/main.ts": "createStore();\ncreateStore();\n", "src/other.ts": "createStore\n" });
  commit(root, "Add another");
  addEntries(root, { "README.md": "# Read me\n" });
  commit(root, "Say how");
  addEntries(root, {
    "src/store.ts": "import { open } from 'db';\n\nexport function createStore() {\n  return open(1);\n}\n",
    "docs/guide.md": "# Guide\n\nCall createStore last.\n",
    "src/main.ts": "main();\n",
    "new.txt": "not known yet\n",
    "debug.log": "ignored\n",
  });
  return root;
}

function escapes(outside: string): string[] {
  return [
    "..",
    "../..",
    "src/../../etc",
    outside,
    join(outside, "secret.txt"),
    "/etc/passwd",
    "/",
    "link.txt",
    "way out",
    "way out/secret.txt",
    "circle",
    ".git",
    ".git/config",
    ".git/HEAD",
    ".GIT/config",
    "src/../.git/config",
    "to git/config",
    "src/\0",
    "src/store.ts\0.txt",
    "a".repeat(5_000),
  ];
}

function timesOf(root: string): string[] {
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  return paths.map((path) => `${path} ${lstatSync(join(root, path)).mtimeMs}`);
}
