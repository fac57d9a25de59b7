/** Whatever is in a file, an answer or a message: a parser gives a value, data about what is wrong, or a ContextError, and soon. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { type Checkpoint, createTrimmer } from "../../src/conversation/history/index.ts";
import { ContextError, errorCodes } from "../../src/core/errors.ts";
import { countMessages, formatNames, normaliseMessages, validateRequest } from "../../src/core/messages/index.ts";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { closeFence, fitForeignText, importedNames, parseSegments, toByteString } from "../../src/core/text/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { parseConfigFile } from "../../src/host/config/config-file.ts";
import { openIgnoreRules } from "../../src/host/files/ignore-rules.ts";
import { checkPhases } from "../../src/plans/nebula/check-phases.ts";
import { parseManifest, parsePhaseFile } from "../../src/plans/nebula/nebula-files.ts";
import { openNebulaRecord } from "../../src/plans/nebula/nebula-record.ts";
import { parseFabricBlock } from "../../src/plans/nebula/phase-prompt.ts";
import { readRecording } from "../../src/recordings/sessions/index.ts";
import { parseLine } from "../../src/results/mcp/rpc-message.ts";
import { parseToken } from "../../src/results/session/continuations.ts";
import { adapterFileSchema } from "../../src/rules/adapters/adapter-schema.ts";
import { loadContent } from "../../src/rules/content/load-content.ts";
import { readNotes } from "../../src/rules/content/notes.ts";
import { markedBlock } from "../../src/rules/files/marked-block.ts";
import { toPlainProse } from "../../src/rules/files/plain-prose.ts";
import { jsonFormat } from "../../src/rules/mcp-wire/edit-json.ts";
import { loadTomlFormat } from "../../src/rules/mcp-wire/edit-toml.ts";
import { findFetchMarkers, mergeLayers, orderPacks, renderContext } from "../../src/rules/packs/index.ts";
import { convertHtml } from "../../src/rules/sync/convert-html.ts";
import { convertMessages } from "../generate/convert/convert-messages.ts";
import { generateSession } from "../generate/generate-session.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const root = mkdtempSync(join(tmpdir(), "plimsoll-parsers-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A machine under load must not fail it: what it finds takes many seconds, or for ever. */
const mostMs = 5_000;

async function survives(parse: (text: string) => unknown, text: string): Promise<void> {
  const before = process.cpuUsage();
  try {
    await parse(text);
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    expect(errorCodes).toContain(error.code);
    expect(error.message).not.toBe("");
  }
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(mostMs);
}

/** What parsers trip over, of any format. */
const snippets = [
  ...[
    "",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\0",
    "\ufeff",
    "\ud800",
    "\u2028",
    "é😀",
    "\\",
    "\\u",
    '"',
    "'",
    "`",
    "```\n",
    "~~~\n",
  ],
  ...[
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "<!--",
    "-->",
    "&",
    "*",
    "!",
    "|",
    ">",
    "%",
    "@",
    "#",
    ",",
    ":",
    ";",
    "=",
    ".",
  ],
  ...[
    "- ",
    "? ",
    ": ",
    "+++\n",
    "---\n",
    "...\n",
    "!!binary ",
    "!!set ",
    "!x ",
    "&a ",
    "*a",
    "<<: *a\n",
    "|\n",
    ">-\n",
  ],
  ...[
    "__proto__",
    "__proto__: {}\n",
    '"__proto__":{"a":1},',
    "constructor",
    "toString: 1\n",
    "null",
    "true",
    "~",
    "1e999",
  ],
  ...[
    "-1",
    "9007199254740993",
    "0x1F",
    "1.5",
    "NaN",
    "[[]]",
    "{}",
    '"a":',
    "[a]\n",
    "[[a]]\n",
    "a.b.c = 1\n",
    '"""',
    "'''",
  ],
  ...["<div>", "</div>", "<table><tr><td>", "<pre>", "<script>", "&#x110000;", "&amp", "<a href=", "<![CDATA["],
  ...["<!-- plimsoll:start:context -->\n", "<!-- plimsoll:end:context -->\n", "<!-- verbosity:detail -->\n"],
  ...['<!-- sync:fetch url="x" -->\n', "~~~fabric\n", "@a", "r1:offset:1", "offset:", "1970-01-01", "\u001b[31m"],
];

type Mutation = readonly [
  kind: "delete" | "insert" | "repeat" | "swap" | "prefix",
  at: number,
  size: number,
  snippet: string,
];

const mutation: fc.Arbitrary<Mutation> = fc.tuple(
  fc.constantFrom("delete" as const, "insert" as const, "repeat" as const, "swap" as const, "prefix" as const),
  fc.nat(10_000),
  fc.nat(40),
  fc.constantFrom(...snippets),
);

function mutate(text: string, mutations: readonly Mutation[]): string {
  return mutations.reduce((current, [kind, place, size, snippet]) => {
    const at = Math.floor((place / 10_001) * (current.length + 1));
    const [before, part, after] = [current.slice(0, at), current.slice(at, at + size), current.slice(at + size)];
    if (kind === "delete") return before + after;
    if (kind === "insert") return before + snippet + part + after;
    if (kind === "repeat") return before + (part + snippet).repeat(size) + after;
    if (kind === "swap") return after + part + before;
    return snippet + before;
  }, text);
}

interface Fuzzed {
  readonly samples: readonly string[];
  readonly runs: number;
  parse(text: string): unknown;
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** What loading gives is rendered as well: what comes through the schema must not break what follows. */
function contentWith(path: string): (text: string) => Promise<void> {
  const directory = mkdtempSync(join(root, "content-"));
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  };
  write("packs/a/pack.yaml", "id: a\n");
  write("packs/a/context.md", "# A\n");
  return async (text) => {
    write(path, text);
    const layers = [{ layer: "project" as const, directory, strictness: "error" as const }];
    const { packs, profiles } = await loadContent({
      layers,
      loadAdapterSchema: async () => adapterFileSchema,
    });
    const merged = mergeLayers(packs, { language: "de" });
    for (const profile of [undefined, ...profiles])
      renderContext(orderPacks(merged.packs, profile), { title: "T", verbosity: "full", profile, facts: [] });
  };
}

async function parseNotes(text: string): Promise<void> {
  mkdirSync(join(root, ".plimsoll"), { recursive: true });
  writeFileSync(join(root, ".plimsoll/notes.yaml"), text);
  await readNotes(root);
}

async function parseIgnored(text: string): Promise<void> {
  writeFileSync(join(root, ".gitignore"), text);
  const rules = await openIgnoreRules(root);
  for (const path of ["a", "src/a.ts", `${"a/".repeat(30)}a`, "a".repeat(200)]) rules.ignores(join(root, path), "file");
}

function parseMarkdown(text: string): void {
  parseSegments(text);
  findFetchMarkers(text);
  importedNames(text);
  toPlainProse(text);
  closeFence(text);
  fitForeignText(text, { maxLines: 9, maxBytes: 90 });
}

function parseMarkers(text: string): void {
  const file = toByteString(text);
  markedBlock.find(file, "context");
  markedBlock.remove(file, "context");
  markedBlock.put(file, "context", "body\n");
}

async function parsePhase(text: string): Promise<void> {
  const drafts = [await parsePhaseFile(text, "a.md"), await parsePhaseFile(phase, "b.md")];
  checkPhases(drafts);
}

const wired = { keys: ["mcp_servers"], name: "plimsoll", entry: { command: "plimsoll", args: ["mcp"] } };

function editWith(format: typeof jsonFormat): (text: string) => void {
  return (text) => {
    const added = format.add(toByteString(text), wired);
    format.remove(added, wired);
  };
}

const phase =
  '+++\nid = "api"\ntitle = "The api"\ndepends_on = ["b"]\nscope = ["src/{a,b}/**", "x[0-9].ts"]\ngate = "review"\n+++\nDo it.\n';
const block =
  "claims: [src/a.ts]\ndiscoveries:\n  - detail: the table is missing\n    affects: page\nentanglements:\n  - { package: a, kind: function, signature: f(x: string) }\nnotes:\n  - text: uses REST\n";
const page =
  '<html><head><base href="/x/"><style>a{}</style></head><body><nav>m</nav><main class="a"><h1>T</h1><p>One <b>two</b> <a href="b?c">d</a>&amp;</p><ul><li>x<ol><li>y</li></ol></li></ul><pre><code>a\nb</code></pre><table><tr><th>h</th></tr><tr><td>1|2</td></tr></table><blockquote>q</blockquote></main></body></html>';
const markdown =
  '# T\n\n<!-- verbosity:detail -->\ntext `code` **b** [l](u) @AGENTS.md\n\n- item\n  ```js\n  x\n  ```\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<!-- sync:fetch url="https://a.example" max_lines="5" -->\n<!-- a\ncomment -->\n';
const marked = markedBlock.put(undefined, "context", "Use it.\n\n```\ncode\n```\n");
const rpc =
  '{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"a","arguments":{"b":[1]},"_meta":{}}}';

const parsers: Readonly<Record<string, Fuzzed>> = {
  configuration: {
    samples: [
      "counter: estimate:o200k\nprofile: full\ntools: [claude-code]\nverbosity: { cursor: minimal }\ncompany: { source: ../packs, revision: main }\nsession:\n  total: 1000\n  tools: { read_file: 900 }\nprices:\n  m: { input: 1 }\n",
    ],
    runs: 10,
    parse: parseConfigFile,
  },
  packs: {
    samples: [
      read("content/packs/git/pack.yaml"),
      "id: a\nname: &n A\ndescription: *n\noverlaps: [b]\nadditive: yes\nversions: { x: 1.10 }\nlocales: { de: { name: Ä } }\nchangelog:\n  - one\n",
    ],
    runs: 5,
    parse: contentWith("packs/a/pack.yaml"),
  },
  samples: {
    samples: [read("content/packs/node/samples.yaml")],
    runs: 5,
    parse: contentWith("packs/a/samples.yaml"),
  },
  "known errors": {
    samples: [read("content/packs/git/known_errors.yaml")],
    runs: 5,
    parse: contentWith("packs/a/known_errors.yaml"),
  },
  learning: {
    samples: [read("content/packs/git/learning.yaml")],
    runs: 5,
    parse: contentWith("packs/a/learning.yaml"),
  },
  "texts of packs": { samples: [markdown], runs: 5, parse: contentWith("packs/a/context.md") },
  profiles: {
    samples: ["id: p\nname: P\ndescription: d\npacks:\n  - { id: a, reason: r }\n"],
    runs: 5,
    parse: contentWith("profiles/p.yaml"),
  },
  adapters: {
    samples: [read("content/adapters/claude-code.yaml")],
    runs: 5,
    parse: contentWith("adapters/x.yaml"),
  },
  notes: { samples: ["# ours\nnotes:\n  - one\n  - 'two: three'\n"], runs: 5, parse: parseNotes },
  "nebula.toml": {
    samples: [
      '[nebula]\nname = "plan"\n[defaults]\nlabels = ["a"]\n[execution]\nmax_workers = 2\nrouting = { tiers = [{ name = "a" }] }\n[context]\ngoals = ["g"]\n',
    ],
    runs: 10,
    parse: (text) => parseManifest(text, "nebula.toml"),
  },
  phases: { samples: [phase], runs: 10, parse: parsePhase },
  "fabric blocks": {
    samples: [`Done.\n\n~~~fabric\n${block}~~~\n`, `- ~~~fabric\n  ${block.replaceAll("\n", "\n  ")}~~~`],
    runs: 10,
    parse: parseFabricBlock,
  },
  HTML: {
    samples: [page],
    runs: 10,
    parse: (text) => {
      for (const format of ["text", "markdown"] as const)
        convertHtml(text, { format, selector: "main .a, #b", baseUrl: "https://a.example" });
    },
  },
  "ignore rules": {
    samples: ["# a\n*.log\n!keep/**/x[0-9].ts\n/build/\n\\#b \n"],
    runs: 4,
    parse: parseIgnored,
  },
  Markdown: { samples: [markdown, page], runs: 10, parse: parseMarkdown },
  markers: { samples: [marked, `mine\n\n${marked}\nmore\n`], runs: 10, parse: parseMarkers },
  "lines of MCP": {
    samples: [rpc, `[${rpc},${rpc}]`, '{"method":"notifications/cancelled","params":{"requestId":1.5}}'],
    runs: 20,
    parse: (text) => parseLine(Buffer.from(text)),
  },
  "offset tokens": {
    samples: ["offset:100", "r42:offset:100+2048", "r42:json:1+2", "r42:fields+0"],
    runs: 20,
    parse: parseToken,
  },
  "JSON of other tools": {
    samples: ['{\n  // ours\n  "mcp_servers": { "a": { "command": "b" }, },\n  "x": [1, true, null]\n}\n'],
    runs: 10,
    parse: editWith(jsonFormat),
  },
  "TOML of other tools": {
    samples: ['model = "m"\n[mcp_servers.a]\ncommand = "b" # c\nargs = [\n  "d",\n]\n[[x]]\ny = """\nz"""\n'],
    runs: 10,
    parse: editWith(await loadTomlFormat()),
  },
  ...Object.fromEntries(recordings().map(([name, text]) => [name, recording(text)])),
};

function recording(text: string): Fuzzed {
  return { samples: [text], runs: 5, parse: (each) => readRecording(each, { file: "a.jsonl" }) };
}

function recordings(): [string, string][] {
  const { messages } = generateSession({ seed: 3, turns: 4 });
  const lines = (values: readonly object[]) => values.map((value) => JSON.stringify(value)).join("\n");
  const timestamp = "2026-02-03T04:05:06.000Z";
  const claude = messages.map((message, index) => ({
    ...{
      parentUuid: null,
      isSidechain: false,
      sessionId: "s",
      type: message.role,
      uuid: `u${index}`,
      timestamp,
    },
    message: { id: `m${index}`, ...message },
  }));
  const codex = [
    { timestamp, type: "session_meta", payload: { id: "s", base_instructions: { text: "Be brief." } } },
    ...convertMessages(messages, "responses").map((payload) => ({
      timestamp,
      type: "response_item",
      payload,
    })),
  ];
  return [
    ["transcripts", lines([{ meta: { model: "m" } }, ...messages])],
    ["sessions of Claude Code", lines(claude)],
    ["sessions of Codex", lines(codex)],
    ["requests", JSON.stringify({ model: "m", system: "s", messages })],
  ];
}

describe("a text in which anything was changed is read, or refused in words:", () => {
  test.each(Object.keys(parsers))("%s", async (name) => {
    const { samples, runs, parse } = parsers[name]!;
    const changed = fc.tuple(fc.constantFrom(...samples), fc.array(mutation, { minLength: 1, maxLength: 4 }));
    const property = fc.asyncProperty(changed, ([sample, mutations]) => survives(parse, mutate(sample, mutations)));
    await fc.assert(property, { numRuns: runs * (isDeep ? 60 : 2) });
  });
});

const garbage: readonly unknown[] = [
  ...[
    null,
    undefined,
    true,
    -1,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER,
    "",
    "x",
    "constructor",
    "__proto__",
    "\ud800\0",
    [],
    {},
    [[]],
    [null],
    { x: {} },
  ],
  ...[
    JSON.parse('{"__proto__":{"a":1}}'),
    { constructor: 1 },
    { toString: 1 },
    { length: 3 },
    { type: "text" },
    { role: 1 },
  ],
];

/** With garbage in the place of anything inside. */
function replaced(value: unknown, place: number, by: unknown): unknown {
  const copy = structuredClone(value);
  const places: [holder: Record<string, unknown>, key: string][] = [];
  const collect = (each: unknown): void => {
    if (typeof each !== "object" || each === null) return;
    for (const [key, inside] of Object.entries(each)) {
      places.push([each as Record<string, unknown>, key]);
      collect(inside);
    }
  };
  collect(copy);
  const found = places[place % Math.max(1, places.length)];
  if (found !== undefined) found[0][found[1]] = by;
  return copy;
}

const replacement = fc.tuple(fc.nat(100_000), fc.constantFrom(...garbage));
const counter = await createCounter("bytes/4");
const valueRuns = isDeep ? 1_500 : 30;

test.each(formatNames)(
  "messages of the format %s with garbage anywhere are counted, trimmed and judged, or refused",
  async (format) => {
    const { messages } = generateSession({ seed: 5, turns: 6 });
    const sample = convertMessages(messages, format);
    const use = async (changed: unknown, given: typeof format | undefined): Promise<void> => {
      const list = changed as readonly object[];
      for (const step of [
        () => countMessages(list, counter, { format: given }),
        () => validateRequest({ messages: list }, { format: given, strict: true }),
        () => normaliseMessages(list, { format: given }),
        async () =>
          (await createTrimmer({ contextWindow: 2_000, reserve: 0, counter, format: given })).reduce({
            messages: list,
          }),
      ])
        await survives(step, "");
    };
    const property = fc.asyncProperty(
      fc.array(replacement, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      (replacements, isGiven) =>
        use(
          replacements.reduce((value: unknown, [place, by]) => replaced(value, place, by), sample),
          isGiven ? format : undefined,
        ),
    );
    await fc.assert(property, { numRuns: valueRuns });
  },
);

test.each(formatNames)("a request of the format %s with garbage anywhere is judged, or refused", async (format) => {
  const { messages, tools } = generateSession({ seed: 7, turns: 1 });
  const cached = { type: "text", text: "s", cache_control: { type: "ephemeral", ttl: "1h" } };
  const sample = {
    model: "claude-opus-4-5",
    max_tokens: 100,
    ...{ system: [cached], tools, tool_choice: { type: "tool", name: "read_file" } },
    ...{
      thinking: { type: "enabled", budget_tokens: 50 },
      compaction: {},
      context_management: { edits: [{ type: "compact_1" }] },
    },
    [format === "responses" ? "input" : "messages"]: convertMessages(messages, format),
  };
  const property = fc.asyncProperty(replacement, ([place, by]) => {
    const request = replaced(sample, place, by) as object;
    return survives(() => validateRequest(request, { format, strict: true }), "");
  });
  await fc.assert(property, { numRuns: valueRuns });
});

test("a checkpoint with garbage anywhere is refused, or trims on", async () => {
  const { messages } = generateSession({ seed: 6, turns: 30 });
  const create = (checkpoint?: Checkpoint) =>
    createTrimmer({ contextWindow: 8_000, reserve: 0, counter, format: "anthropic", checkpoint });
  const trimmer = await create();
  trimmer.reduce({ messages });
  const sample = await trimmer.checkpoint();
  expect(sample.ledger.epochs.length).toBeGreaterThan(0);
  const property = fc.asyncProperty(replacement, ([place, by]) =>
    survives(async () => {
      const resumed = await create(replaced(sample, place, by) as Checkpoint);
      resumed.reduce({ messages });
      await resumed.checkpoint();
      await resumed.recall("r1");
    }, ""),
  );
  await fc.assert(property, { numRuns: valueRuns });
});

test("a record of a nebula that is any text is refused, and stays as it is", async () => {
  const store = createMemoryStore();
  const text = JSON.stringify({ version: 1, name: "n", directory: "/", phases: {}, fabric: {} });
  const property = fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
    const changed = mutate(text, mutations);
    await store.put("nebula", "n", changed);
    await survives(() => openNebulaRecord(store, "n").read(), "");
    expect((await store.get("nebula", "n"))?.value).toBe(changed);
  });
  await fc.assert(property, { numRuns: valueRuns });
});
