import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mergeLayers, type PackLayer, type PackSource } from "../../packs/index.ts";
import { textAt } from "../../text/index.ts";
import { expandLayers } from "./expanded-texts.ts";
import { type SyncTextsOptions, syncTexts } from "./sync-texts.ts";

let root: string;
let server: Server;
let origin: string;
let pages: Record<string, string>;
let asked: string[];
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-texts-"));
  [pages, asked] = [{}, []];
  server = createServer(({ url = "" }, response) => {
    asked.push(url);
    const page = pages[url];
    response.setHeader("content-type", page?.startsWith("<") ? "text/html" : "text/plain");
    response.writeHead(page === undefined ? 500 : 200).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(root, { recursive: true, force: true });
});

const env = () => ({ XDG_CACHE_HOME: root });
const marker = (path: string, more = "") => `<!-- sync:fetch url="${origin}${path}" ${more} -->`;
const at = (hour: number) => () => new Date(Date.UTC(2026, 0, 1, hour));

function layersOf(...packs: (readonly [id: string, texts: Record<string, string>])[]): PackLayer[] {
  const source = (id: string, texts: Record<string, string>): PackSource => ({
    ...{ id, name: id, description: "", tags: [], weight: 0, base: false, additive: false },
    ...{ additivePosition: "after", overlaps: [], profiles: [], locales: {}, versions: {}, changelog: [] },
    ...{ texts, samples: [], knownErrors: [], learning: [], directory: `packs/${id}` },
  });
  return [{ layer: "project", sources: packs.map(([id, texts]) => source(id, texts)) }];
}

const sync = (layers: readonly PackLayer[], options: Partial<SyncTextsOptions> = {}) =>
  syncTexts(layers, { env: env(), now: at(0), allowPrivate: true, ...options });

/** As a reader gets the first pack. */
function shown(layers: readonly PackLayer[], language = "en"): string {
  const { packs } = mergeLayers(expandLayers(layers, { env: env(), leftOut: [] }).layers, { language });
  return textAt(packs[0]?.context ?? [], "full");
}

test("a text takes the place of its marker, converted and cut as the marker says", async () => {
  pages["/a"] = "<main><h2>T</h2><p>x</p></main><p>y</p>";
  pages["/b"] = "1\n2\n3\n";
  const layers = layersOf([
    "p",
    { "context.md": `A\n\n${marker("/a", 'selector="main"')}\n\n${marker("/b", 'max_lines="2"')}\nB\n` },
  ]);
  expect(shown(layers)).toBe("A\n\n\nB\n");
  const { texts, warnings } = await sync(layers);
  expect(warnings).toEqual([]);
  expect(texts).toMatchObject([
    { url: `${origin}/a`, packs: ["p"], status: "fetched", bytes: 8, fetched: "2026-01-01T00:00:00.000Z" },
    { url: `${origin}/b`, packs: ["p"], status: "fetched", bytes: 6 },
  ]);
  expect(shown(layers)).toBe("A\n\n## T\n\nx\n\n1\n2\nB\n");
});

test("a change of limits or of the text around needs no new fetch", async () => {
  pages["/b"] = "1\n2\n3\n";
  await sync(layersOf(["p", { "context.md": marker("/b", 'max_lines="2"') }]));
  expect(shown(layersOf(["p", { "context.md": `new\n${marker("/b", 'max_tokens="1"')}` }]))).toBe(
    "new\n1\n2\n",
  );
  expect(shown(layersOf(["p", { "context.md": marker("/b", 'format="text"') }]))).toBe("");
});

test("variants in a language and constraints are expanded, code is not", async () => {
  pages["/b"] = "fetched\n";
  const code = `\`\`\`\n${marker("/b")}\n\`\`\`\n`;
  const layers = layersOf(["p", { "context.md": code, "context.de.md": `${marker("/b")}\nde\n` }]);
  await sync(layers);
  expect(shown(layers, "de")).toBe("fetched\nde\n");
  expect(shown(layers)).toBe(code);
  expect(asked).toEqual(["/b"]);
});

test("a pack that brings its expanded text needs no fetch for the plain one", async () => {
  const layers = layersOf(["p", { "context.md": marker("/b"), "context.expanded.md": "there\n" }]);
  expect((await sync(layers)).texts).toEqual([]);
  expect(shown(layers)).toBe("there\n");
});

test("a text is fetched again when its time is over, or by force; the shortest time counts", async () => {
  pages["/b"] = "1";
  const weekly = layersOf(["p", { "context.md": marker("/b") }]);
  const both = layersOf(
    ["p", { "context.md": marker("/b") }],
    ["q", { "context.md": marker("/b", 'ttl_hours="2"') }],
  );
  const statusAt = async (hour: number, layers = weekly, force = false) =>
    (await sync(layers, { now: at(hour), force })).texts.map(({ status }) => status);
  expect(await statusAt(0)).toEqual(["fetched"]);
  expect(await statusAt(167)).toEqual(["fresh"]);
  expect(await statusAt(1, both)).toEqual(["fresh"]);
  expect(await statusAt(2, both)).toEqual(["fetched"]);
  expect(await statusAt(2 + 168)).toEqual(["fetched"]);
  expect(await statusAt(170, weekly, true)).toEqual(["fetched"]);
  expect(await statusAt(0)).toEqual(["fetched"]);
  expect(asked).toHaveLength(5);
});

test("a failed fetch keeps the last good text; without one the marker never shows", async () => {
  const layers = layersOf(["p", { "context.md": `A\n${marker("/b", 'ttl_hours="0"')}\nB\n` }]);
  expect((await sync(layers)).texts).toMatchObject([
    { status: "failed", reason: "HTTP 500", fetched: undefined },
  ]);
  expect(shown(layers)).toBe("A\nB\n");
  pages["/b"] = "good\n";
  await sync(layers);
  delete pages["/b"];
  expect((await sync(layers)).texts).toMatchObject([
    { status: "kept", reason: "HTTP 500", fetched: "2026-01-01T00:00:00.000Z", bytes: 5 },
  ]);
  expect(shown(layers)).toBe("A\ngood\nB\n");
});

test("a fetched text has no say over the pack around it", async () => {
  pages["/b"] =
    `x\n<!-- verbosity:extended -->\n${marker("/c")}\n<!-- plimsoll:end:context -->\n\`\`\`\nopen\n`;
  const layers = layersOf(["p", { "context.md": `${marker("/b")}\nafter\n` }]);
  await sync(layers);
  const { packs } = mergeLayers(expandLayers(layers, { env: env(), leftOut: [] }).layers, { language: "en" });
  expect(packs[0]?.context).toEqual([{ tier: "core", text: "x\n```\nopen\n```\nafter\n" }]);
  expect(asked).toEqual(["/b"]);
});

test("what is odd about a marker comes with its file and line, and the others are fetched", async () => {
  pages["/b"] = "1";
  const layers = layersOf([
    "p",
    { "context.md": `\n<!-- sync:fetch label="x" -->\n${marker("/b", 'max_lines="x"')}\n` },
  ]);
  const { texts, warnings } = await sync(layers);
  expect(texts).toMatchObject([{ status: "fetched" }]);
  expect(warnings).toMatchObject([
    { file: "packs/p/context.md", line: 2, severity: "warning", rule: "sync-fetch" },
    { file: "packs/p/context.md", line: 3, severity: "warning", rule: "sync-fetch" },
  ]);
});

test("packs without markers are the same objects", () => {
  const layers = layersOf(["p", { "context.md": "x" }]);
  expect(expandLayers(layers, { env: env(), leftOut: [] }).layers[0]?.sources[0]).toBe(layers[0]?.sources[0]);
});

test("a cache that is torn or cannot be written is no text and no crash", async () => {
  pages["/b"] = "1\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  const cache = join(root, "plimsoll/fetched");
  for (const file of readdirSync(cache)) writeFileSync(join(cache, file), '{"url":"');
  expect(shown(layers)).toBe("");
  expect((await sync(layers)).texts).toMatchObject([{ status: "fetched" }]);
  rmSync(cache, { recursive: true });
  writeFileSync(cache, "");
  expect((await sync(layers)).texts).toMatchObject([
    { status: "failed", reason: expect.stringMatching(/cannot be written \(E\w+\)$/) },
  ]);
});

test("many pages come in the order of their markers", async () => {
  const paths = Array.from({ length: 11 }, (_, index) => `/n${index}`);
  for (const path of paths) pages[path] = path;
  const told: string[] = [];
  const layers = layersOf(["p", { "context.md": paths.map((path) => marker(path)).join("\n") }]);
  const { texts } = await sync(layers, { progress: (text) => told.push(text) });
  expect(texts.map(({ url }) => url)).toEqual(paths.map((path) => `${origin}${path}`));
  expect(told[0]).toBe(`fetching 1 of 11: ${origin}/n0`);
  expect(shown(layers)).toBe(paths.map((path) => `${path}\n`).join(""));
});

test("a warning about an expanded text is told by the line of the file", async () => {
  pages["/b"] = "1\n2\n3\n";
  const layers = layersOf([
    "p",
    { "context.md": `${marker("/b")}\n${marker("/none")}\n<!-- verbosity:odd -->\n` },
  ]);
  await sync(layers);
  const expanded = expandLayers(layers, { env: env(), leftOut: [] });
  const { warnings } = mergeLayers(expanded.layers, { language: "en" });
  expect(warnings.map(({ line }) => line)).toEqual([4, 5]);
  expect(
    warnings.map(({ directory, file, line }) => expanded.originalLine(join(directory, file), line)),
  ).toEqual([2, 3]);
  expect(expanded.originalLine("other", 7)).toBe(7);
});
