// @module-tag deep
/** A page must arrive whole in every client that is known to cut results. Each client's cut is simulated as its runs showed it. */
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import { connectLines, joinItems, type LineClient, plimsoll, readTextPages, type ToolResult } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));
const estimate = await createCounter("estimate:claude-5");
const bytesOf = (text: string): number => Buffer.byteLength(text);
const textOf = ({ content }: ToolResult, between: string): string => content.map(({ text }) => text).join(between);

/** Whether the client would cut the result. */
type Cuts = (result: ToolResult) => boolean;

const clients: readonly (readonly [name: string, cuts: Cuts])[] = [
  [
    // Codex 0.166 shows the structured content where there is one, below a line of its own, and keeps 12,000 bytes.
    "codex-mcp-client",
    (result) => {
      const { structuredContent } = result;
      const shown = structuredContent === undefined ? textOf(result, "") : JSON.stringify(structuredContent);
      return bytesOf(`Wall time: 123.4567 seconds\nOutput:\n${shown}`) > 12_000;
    },
  ],
  // gemini-cli 0.61 keeps 40,000 characters.
  ["gemini-cli-mcp-client", (result) => textOf(result, "").length > 40_000],
  [
    // opencode 1.18 joins blocks with an empty line, and keeps 50 KB and 2,000 lines.
    "opencode",
    (result) => {
      const text = textOf(result, "\n\n");
      return bytesOf(text) > 50 * 1024 || text.split("\n").length > 2_000;
    },
  ],
  [
    // Claude Code 2.1 keeps 25,000 tokens and about 50,000 characters of the form that it shows.
    "claude-code",
    (result) => {
      const { structuredContent } = result;
      const shown = structuredContent === undefined ? textOf(result, "") : JSON.stringify(structuredContent);
      return shown.length > 50_000 || estimate.count(shown) > 25_000;
    },
  ],
];

/** A word in a script whose characters have that many bytes each. */
const scripts: readonly (readonly [bytes: number, word: string])[] = [
  [1, 'word "quoted" '],
  [2, "élève слово "],
  [3, "漢字かな交じり文"],
  [4, "😀🎉🚀"],
];

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => {
  for (const client of opened.splice(0)) client.child.kill("SIGKILL");
  sandbox.remove();
});

/** Only the client's limit keeps pages small. */
const large = ["--per-tool", "60000", "--total", "1000000"];

async function connect(name: string, args: readonly string[]): Promise<LineClient> {
  const client = connectLines(plimsoll("mcp", ...args), sandbox);
  opened.push(client);
  await client.initialize(undefined, name);
  return client;
}

/** All pages of a result. Fails where the client would cut one. */
async function readWhole(client: LineClient, first: ToolResult, cuts: Cuts) {
  const pages: Record<string, unknown>[] = [];
  for (let result = first; ; ) {
    expect({ page: pages.length, isCut: cuts(result) }).toEqual({ page: pages.length, isCut: false });
    const { data } = JSON.parse(result.content[0]!.text) as { data: { continuation_token?: string } };
    pages.push(data as Record<string, unknown>);
    if (data.continuation_token === undefined) return pages as never;
    result = await client.call("next_page", { token: data.continuation_token });
  }
}

const linesOf = (word: string): string[] =>
  Array.from({ length: 1_500 }, (_, index) => `${index} ${word.repeat(1 + (index % 9))}`);

describe.each(process.env.PLIMSOLL_DEEP === "1" ? clients : clients.slice(0, 1))("%s", (name, cuts) => {
  test("shows text pages of characters of one to four bytes whole", async () => {
    const client = await connect(name, large);
    for (const [bytes, word] of scripts) {
      const lines = linesOf(word);
      const path = `text-${bytes}.txt`;
      sandbox.write(path, `${lines.join("\n")}\n`);
      const pages = await readTextPages(client, { name: "read_file", args: { path } });
      expect(pages.map(({ result }) => cuts(result))).toEqual(pages.map(() => false));
      const shown = pages.flatMap(({ body }) => body.split("\n"));
      expect(shown).toEqual(lines.map((line, index) => `${index + 1}\t${line}`));
    }
  });

  test("shows JSON pages of characters of one to four bytes whole", async () => {
    const client = await connect(name, ["--format", "json", ...large]);
    for (const [bytes, word] of scripts) {
      const lines = linesOf(word);
      sandbox.write(`text-${bytes}.txt`, `${lines.join("\n")}\n`);
      const first = await client.call("read_file", { path: `text-${bytes}.txt` });
      const pages = await readWhole(client, first, cuts);
      expect(joinItems(pages, "lines").map((line) => (line as { text: string }).text ?? line)).toEqual(lines);
    }
  });

  test("shows wrapped pages of characters of one to four bytes whole", { tags: ["deep"] }, async () => {
    const client = await connect(name, ["wrap", ...large, "--", process.execPath, oddServer]);
    for (const [, word] of scripts) {
      const lines = linesOf(word);
      const pages = await readTextPages(client, { name: "blocks", args: { texts: [lines.join("\n")] } });
      expect(pages.map(({ result }) => cuts(result))).toEqual(pages.map(() => false));
      // Claude Code gets a preview and then all pages.
      const whole = pages.filter(({ result }) => !result.content[0]!.text.includes("\n[preview of "));
      expect(whole.flatMap(({ body }) => body.split("\n"))).toEqual(lines);
    }
    expect(await client.end()).toBe(0);
  });

  test("shows a wrapped result whole that passes as it came", async () => {
    const client = await connect(name, ["wrap", ...large, "--", process.execPath, oddServer]);
    for (const [, word] of scripts) {
      for (const bytes of [11_000, 11_900, 12_050, 38_000, 39_500, 47_000, 50_500, 51_300]) {
        const text = word.repeat(Math.floor(bytes / bytesOf(word)));
        expect({ word, bytes, isCut: cuts(await client.call("blocks", { texts: [text] })) }).toEqual({
          ...{ word, bytes, isCut: false },
        });
      }
    }
    for (const texts of [Array(1_500).fill("block"), ["l\n".repeat(2_050)]])
      expect(cuts(await client.call("blocks", { texts }))).toBe(false);
  });
});
