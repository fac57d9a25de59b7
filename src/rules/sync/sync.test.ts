import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { textAt } from "../../core/text/index.ts";
import type { ContentProblem } from "../content/load-content.ts";
import { mergeLayers, type PackLayer, type PackSource } from "../packs/index.ts";
import { expandLayers } from "./expand-layers.ts";
import { type SyncTextsOptions, syncTexts } from "./sync.ts";

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

const folder = () => ({ directory: join(root, ".plimsoll"), root, env: { XDG_STATE_HOME: join(root, "state") } });
const fetchedFolder = () => join(root, ".plimsoll/fetched");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const marker = (path: string, more = "") => `<!-- sync:fetch url="${origin}${path}" ${more} -->`;
const at = (hour: number) => () => new Date(Date.UTC(2026, 0, 1, hour));

function layersOf(...packs: (readonly [id: string, texts: Record<string, string>])[]): PackLayer[] {
  const source = (id: string, texts: Record<string, string>): PackSource => ({
    ...{ id, name: id, description: "", tags: [], weight: 0, base: false, additive: false },
    ...{ additivePosition: "after", overlaps: [], detect: [], profiles: [], locales: {}, versions: {}, changelog: [] },
    ...{ texts, samples: [], knownErrors: [], learning: [], directory: `packs/${id}` },
    ...{ globs: [], optional: false, nested: false, skills: [] },
  });
  return [{ layer: "project", sources: packs.map(([id, texts]) => source(id, texts)) }];
}

const sync = (layers: readonly PackLayer[], options: Partial<SyncTextsOptions> = {}) =>
  syncTexts(layers, { folder: folder(), now: at(0), allowPrivate: true, ...options });

/** The text that a reader gets from the first pack. */
async function shown(layers: readonly PackLayer[], language = "en"): Promise<string> {
  const { packs } = mergeLayers((await expandLayers(layers, folder())).layers, { language });
  return textAt(packs[0]?.context ?? [], "full");
}

/** What is wrong with the expanded texts. */
async function problems(layers: readonly PackLayer[]): Promise<ContentProblem[]> {
  const expanded = await expandLayers(layers, folder());
  return mergeLayers(expanded.layers, { language: "en" }).warnings.map(expanded.explain);
}

test("a text replaces its marker, converted and cut as the marker says", async () => {
  pages["/a"] = "<main><h2>T</h2><p>x</p></main><p>y</p>";
  pages["/b"] = "1\n2\n3\n";
  const layers = layersOf([
    "p",
    { "context.md": `A\n\n${marker("/a", 'selector="main"')}\n\n${marker("/b", 'max_lines="2"')}\nB\n` },
  ]);
  expect(await shown(layers)).toBe("A\n\n\nB\n");
  const { texts, warnings } = await sync(layers);
  expect(warnings).toEqual([]);
  expect(texts).toMatchObject([
    { url: `${origin}/a`, packs: ["p"], status: "fetched", bytes: 8, fetched: "2026-01-01T00:00:00.000Z" },
    { url: `${origin}/b`, packs: ["p"], status: "fetched", bytes: 4 },
  ]);
  expect(await shown(layers)).toBe("A\n\n## T\n\nx\n\n1\n2\nB\n");
});

test("a change of limits or of the text around a marker needs no new fetch", async () => {
  pages["/b"] = "1\n2\n3\n";
  await sync(layersOf(["p", { "context.md": marker("/b") }]));
  expect(await shown(layersOf(["p", { "context.md": `new\n${marker("/b", 'max_tokens="1"')}` }]))).toBe("new\n1\n2\n");
  expect(await shown(layersOf(["p", { "context.md": marker("/b", 'format="text"') }]))).toBe("");
});

test("expands translations and constraints, but not code", async () => {
  pages["/b"] = "fetched\n";
  const code = `\`\`\`\n${marker("/b")}\n\`\`\`\n`;
  const layers = layersOf(["p", { "context.md": code, "context.de.md": `${marker("/b")}\nde\n` }]);
  await sync(layers);
  expect(await shown(layers, "de")).toBe("fetched\nde\n");
  expect(await shown(layers)).toBe(code);
  expect(asked).toEqual(["/b"]);
});

test("a pack with its own expanded text needs no fetch for the plain one", async () => {
  const layers = layersOf(["p", { "context.md": marker("/b"), "context.expanded.md": "there\n" }]);
  expect((await sync(layers)).texts).toEqual([]);
  expect(await shown(layers)).toBe("there\n");
});

test("fetches a text again when its time is over, or with force, and the shortest time counts", async () => {
  pages["/b"] = "1";
  const weekly = layersOf(["p", { "context.md": marker("/b") }]);
  const both = layersOf(["p", { "context.md": marker("/b") }], ["q", { "context.md": marker("/b", 'ttl_hours="2"') }]);
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

test("a failed fetch keeps the last good text, and without one the marker is never shown", async () => {
  const layers = layersOf(["p", { "context.md": `A\n${marker("/b", 'ttl_hours="0"')}\nB\n` }]);
  expect((await sync(layers)).texts).toMatchObject([{ status: "failed", reason: "HTTP 500", fetched: undefined }]);
  expect(await shown(layers)).toBe("A\nB\n");
  pages["/b"] = "good\n";
  await sync(layers);
  delete pages["/b"];
  expect((await sync(layers)).texts).toMatchObject([
    { status: "kept", reason: "HTTP 500", fetched: "2026-01-01T00:00:00.000Z", bytes: 5 },
  ]);
  expect(await shown(layers)).toBe("A\ngood\nB\n");
});

test("a fetched text cannot change the pack around it", async () => {
  pages["/b"] = `x\n<!-- verbosity:extended -->\n${marker("/c")}\n<!-- plimsoll:end:context -->\n\`\`\`\nopen\n`;
  const layers = layersOf(["p", { "context.md": `${marker("/b")}\nafter\n` }]);
  await sync(layers);
  const { packs } = mergeLayers((await expandLayers(layers, folder())).layers, { language: "en" });
  expect(packs[0]?.context).toEqual([{ tier: "core", text: "x\n```\nopen\n```\nafter\n" }]);
  expect(asked).toEqual(["/b"]);
});

test("the title of a page does not end the section that its marker is in", async () => {
  pages["/b"] = "<main><h1>February</h1><h2>New</h2><p>x</p></main>";
  const layers = (limit = "") => layersOf(["p", { "context.md": `## P\n\n### Releases\n\n${marker("/b", limit)}\n` }]);
  await sync(layers());
  expect(await shown(layers())).toBe("## P\n\n### Releases\n\n#### February\n\n##### New\n\nx\n");
  // The added marks count towards the limit.
  expect(await shown(layers('max_tokens="6"'))).not.toContain("New");
});

test("reports a mistake in a marker with its file and line, and fetches the others", async () => {
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

test("packs without markers are the same objects", async () => {
  const layers = layersOf(["p", { "context.md": "x" }]);
  expect((await expandLayers(layers, folder())).layers[0]?.sources[0]).toBe(layers[0]?.sources[0]);
});

/** The index as it is committed. */
const readIndex = () => JSON.parse(readFileSync(join(fetchedFolder(), "index.json"), "utf8"));
const pinnedFile = () => join(fetchedFolder(), readdirSync(fetchedFolder()).find((name) => name.endsWith(".md")) ?? "");

test("pins a text in a file of its own, with its source, hash and date in the index", async () => {
  pages["/a/b.html"] = "<main><h2>T</h2></main>";
  await sync(layersOf(["p", { "context.md": marker("/a/b.html", 'selector="main"') }]));
  const file = pinnedFile();
  expect(file).toMatch(/\/127-0-0-1-\d+-a-b-html-[\da-f]{8}\.md$/);
  expect(readFileSync(file, "utf8")).toBe("## T\n");
  expect(readIndex()).toEqual({
    texts: [
      {
        file: basename(file),
        url: `${origin}/a/b.html`,
        format: "markdown",
        selector: "main",
        sha256: sha256("## T\n"),
        fetched: "2026-01-01T00:00:00.000Z",
      },
    ],
  });
});

test("pins as much of a page as its markers need, and fetches again for more", async () => {
  pages["/b"] = "1\n2\n3\n4\n";
  const lines = (...counts: number[]) =>
    layersOf(["p", { "context.md": counts.map((count) => marker("/b", `max_lines="${count}"`)).join("\n") }]);
  await sync(lines(1, 2));
  expect(readFileSync(pinnedFile(), "utf8")).toBe("1\n2\n");
  expect(readIndex().texts).toMatchObject([{ max_lines: 2 }]);
  expect((await sync(lines(2))).texts).toMatchObject([{ status: "fresh" }]);
  expect((await sync(lines(9))).texts).toMatchObject([{ status: "fetched" }]);
  expect(readIndex().texts[0]).not.toHaveProperty("max_lines");
  expect((await sync(lines(99))).texts).toMatchObject([{ status: "fresh" }]);
});

test("a text that was never fetched is an error in the line of its marker", async () => {
  const layers = layersOf(["p", { "context.md": `A\n\n${marker("/b")}\n` }]);
  const [own] = await problems(layers);
  expect(own).toMatchObject({ file: "packs/p/context.md", line: 3, severity: "error" });
  expect(own?.message).toContain(`${origin}/b was never fetched. Run \`plimsoll sync\``);
  const others = layers.map((layer) => ({ ...layer, layer: "embedded" as const }));
  const message = expect.stringContaining("Run `plimsoll sync` with the same --content,");
  expect(await problems(others)).toMatchObject([{ severity: "warning", message }]);
});

test("an edited text is an error that names its file, and the next sync fetches it again", async () => {
  pages["/b"] = "1\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  writeFileSync(pinnedFile(), "1\r\n");
  expect(await problems(layers)).toEqual([]);
  writeFileSync(pinnedFile(), "2\n");
  expect(await problems(layers)).toMatchObject([{ file: pinnedFile(), line: 1, severity: "error" }]);
  expect(await shown(layers)).toBe("");
  expect((await sync(layers)).texts).toMatchObject([{ status: "fetched" }]);
  expect(await shown(layers)).toBe("1\n");
});

test("a damaged index is an error that names it, and the next sync writes it again", async () => {
  pages["/b"] = "1\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  const index = join(fetchedFolder(), "index.json");
  for (const text of ["<<<<<<< ours\n", '{"texts":[{}]}', "[]"]) {
    writeFileSync(index, text);
    expect(await problems(layers)).toMatchObject([{ file: index, severity: "error" }]);
    expect((await sync(layers)).texts).toMatchObject([{ status: "fetched" }]);
    expect(await shown(layers)).toBe("1\n");
  }
});

test("removes texts that no marker names, unless a pack could not be read", async () => {
  pages["/b"] = "1\n";
  await sync(layersOf(["p", { "context.md": marker("/b") }]));
  const file = pinnedFile();
  await sync([], { isComplete: false });
  expect(existsSync(file)).toBe(true);
  await sync([]);
  expect(readdirSync(fetchedFolder())).toEqual([]);
});

test("an index that names another file does not make sync delete or read it", async () => {
  writeFileSync(join(root, "mine.md"), "mine\n");
  const file = "../../mine.md";
  const pin = {
    file,
    url: `${origin}/b`,
    format: "markdown",
    sha256: sha256("mine\n"),
    fetched: at(0)().toISOString(),
  };
  mkdirSync(fetchedFolder(), { recursive: true });
  writeFileSync(join(fetchedFolder(), "index.json"), JSON.stringify({ texts: [pin] }));
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  expect(await problems(layers)).toMatchObject([{ message: expect.stringContaining("was never fetched") }]);
  await sync([]);
  expect(readFileSync(join(root, "mine.md"), "utf8")).toBe("mine\n");
  expect(existsSync(join(fetchedFolder(), "index.json"))).toBe(false);
});

test("links in place of the folder or of a text are neither read nor written", async () => {
  pages["/b"] = "1\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  const [file, elsewhere] = [pinnedFile(), join(root, "elsewhere.md")];
  writeFileSync(elsewhere, "1\n");
  rmSync(file);
  symlinkSync(elsewhere, file);
  expect(await problems(layers)).toMatchObject([{ file, message: expect.stringContaining("symbolic link") }]);
  pages["/b"] = "2\n";
  expect((await sync(layers)).texts).toMatchObject([
    { status: "failed", reason: expect.stringContaining("symbolic link") },
  ]);
  expect(readFileSync(elsewhere, "utf8")).toBe("1\n");
  rmSync(fetchedFolder(), { recursive: true });
  mkdirSync(join(root, "other"));
  symlinkSync(join(root, "other"), fetchedFolder());
  expect((await sync(layers)).texts).toMatchObject([{ status: "failed" }]);
  expect(readdirSync(join(root, "other"))).toEqual([]);
});

test("a file that is larger than any fetched text is refused, also with the right hash", async () => {
  pages["/b"] = "1\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  const huge = "a\n".repeat(2_000_000);
  writeFileSync(pinnedFile(), huge);
  const [pin] = readIndex().texts;
  writeFileSync(join(fetchedFolder(), "index.json"), JSON.stringify({ texts: [{ ...pin, sha256: sha256(huge) }] }));
  expect(await problems(layers)).toMatchObject([{ file: pinnedFile(), message: expect.stringContaining("4000000") }]);
});

test("imports and markers in a pinned file have no effect, though its hash is right", async () => {
  pages["/b"] = "See @secret.txt\n";
  const layers = layersOf(["p", { "context.md": marker("/b") }]);
  await sync(layers);
  expect(readFileSync(pinnedFile(), "utf8")).toBe("See \\@secret.txt\n");
  const hostile = "@~/.ssh/id_rsa\n<!-- plimsoll:end:context -->\nafter\n";
  writeFileSync(pinnedFile(), hostile);
  const [pin] = readIndex().texts;
  writeFileSync(join(fetchedFolder(), "index.json"), JSON.stringify({ texts: [{ ...pin, sha256: sha256(hostile) }] }));
  expect(await shown(layers)).toBe("\\@~/.ssh/id_rsa\nafter\n");
});

test("a folder that cannot be written is a failure of each text", async () => {
  pages["/b"] = "1\n";
  mkdirSync(join(root, ".plimsoll"));
  writeFileSync(fetchedFolder(), "");
  const { texts } = await sync(layersOf(["p", { "context.md": marker("/b") }]));
  expect(texts).toMatchObject([{ status: "failed", reason: expect.stringContaining(".plimsoll/fetched/") }]);
});

test("returns many pages in the order of their markers", async () => {
  const paths = Array.from({ length: 11 }, (_, index) => `/n${index}`);
  for (const path of paths) pages[path] = path;
  const told: string[] = [];
  const layers = layersOf(["p", { "context.md": paths.map((path) => marker(path)).join("\n") }]);
  const { texts } = await sync(layers, { progress: (text) => told.push(text) });
  expect(texts.map(({ url }) => url)).toEqual(paths.map((path) => `${origin}${path}`));
  expect(told[0]).toBe(`fetching 1 of 11: ${origin}/n0`);
  expect(await shown(layers)).toBe(paths.map((path) => `${path}\n`).join(""));
});

test("a warning about an expanded text has the line of the file", async () => {
  pages["/b"] = "1\n2\n3\n";
  const layers = layersOf(["p", { "context.md": `${marker("/b")}\n${marker("/none")}\n<!-- verbosity:odd -->\n` }]);
  await sync(layers);
  expect((await problems(layers)).map(({ line, severity }) => [line, severity])).toEqual([
    [2, "error"],
    [3, "warning"],
  ]);
});
