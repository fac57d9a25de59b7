/** What `plimsoll mcp wrap` adds to a call of another server: the reference servers, wrapped and as they are. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { medianOf } from "../tokens/processor-time.ts";
import { type Measurement, measurementOf, timeInTurns } from "./measurement.ts";
import { pageThrough, timeOf } from "./page-through.ts";
import { type ServerClient, type ServerCommand, startServer } from "./server-client.ts";

export interface WrapOptions {
  /** The built command, and where its servers run. */
  readonly main: string;
  readonly cwd: string;
  readonly env: ServerCommand["env"];
  readonly rounds: number;
}

/** Calls of one round: a single one is too short to be timed among others. */
const CALLS = 20;

export async function measureWrap(options: WrapOptions): Promise<Measurement[]> {
  return [...(await measureSmall(options)), ...(await measureLarge(options)), await measureHuge(options)];
}

async function measureSmall(options: WrapOptions): Promise<Measurement[]> {
  return withBoth([servers.everything, "stdio"], options, async (direct, wrapped) => {
    const calls = (client: ServerClient) => async (): Promise<number> => {
      const echo = () => client.call("echo", { message: "a short message" });
      const all = await timeOf(async () => {
        for (let call = 0; call < CALLS; call++) await echo();
      });
      return all / CALLS;
    };
    const rounds = await timeInTurns(options.rounds, [calls(direct), calls(wrapped)]);
    const [plain, times] = rounds as [number[], number[]];
    return [
      measurementOf("echo", plain, { peakMegabytes: direct.peakMegabytes() }),
      measurementOf("echo, wrapped", times, { plain, peakMegabytes: wrapped.peakMegabytes() }),
    ];
  });
}

const LARGE_BYTES = 10_000_000;

async function measureLarge(options: WrapOptions): Promise<Measurement[]> {
  const { folder, lines, read } = writeLarge(options, LARGE_BYTES);
  return withBoth([servers.filesystem, folder], options, async (direct, wrapped) => {
    const once = (client: ServerClient) => () => timeOf(() => client.call(read.tool, read.args));
    const rounds = await timeInTurns(options.rounds, [once(direct), once(wrapped)]);
    const [plain, times] = rounds as [number[], number[]];
    const facts = { pages: 1, peakMegabytes: wrapped.peakMegabytes() };
    const paged = await pageThrough(wrapped, { ...read, itemsName: "content_lines" });
    // The text ends with a line break, and so with an empty line.
    if (paged.items !== lines + 1) throw new Error(`the pages hold ${paged.items} lines, not ${lines}`);
    return [
      measurementOf("read 10 MB", plain, { items: lines, peakMegabytes: direct.peakMegabytes() }),
      measurementOf("read 10 MB, wrapped, first page", times, { plain, ...facts }),
      {
        name: "read 10 MB, wrapped, all pages",
        ...paged,
        ratio: paged.milliseconds / medianOf(plain),
        peakMegabytes: wrapped.peakMegabytes(),
      },
    ];
  });
}

const HUGE_BYTES = 100_000_000;

/** One call in a process of its own: its peak is that of this result. The client could not take the plain one. */
async function measureHuge(options: WrapOptions): Promise<Measurement> {
  const { folder, lines, read } = writeLarge(options, HUGE_BYTES);
  const wrapped = await startServer({ ...options, args: wrapArgs(options, [servers.filesystem, folder]) });
  try {
    const milliseconds = await timeOf(() => wrapped.call(read.tool, read.args));
    const peakMegabytes = wrapped.peakMegabytes();
    return { name: "read 100 MB, wrapped, first page", milliseconds, pages: 1, items: lines, peakMegabytes };
  } finally {
    await wrapped.close();
  }
}

interface LargeFile {
  readonly folder: string;
  readonly lines: number;
  /** The call that gives it whole. */
  readonly read: { readonly tool: string; readonly args: object };
}

function writeLarge({ cwd }: WrapOptions, bytes: number): LargeFile {
  const folder = join(cwd, `large-${bytes}`);
  mkdirSync(folder, { recursive: true });
  const line = (index: number): string =>
    `${String(index).padStart(7, "0")} request GET /parts/${index % 977} answered 200 in ${index % 83} ms\n`;
  const lines = Math.ceil(bytes / line(0).length);
  const path = join(folder, "large.txt");
  writeFileSync(path, Array.from({ length: lines }, (_, index) => line(index)).join(""));
  return { folder, lines, read: { tool: "read_text_file", args: { path } } };
}

/** The reference servers, installed for tests. */
const servers = {
  everything: fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js")),
  filesystem: fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js")),
} as const;

async function withBoth(
  server: readonly string[],
  options: WrapOptions,
  measure: (direct: ServerClient, wrapped: ServerClient) => Promise<Measurement[]>,
): Promise<Measurement[]> {
  const direct = await startServer({ ...options, args: server });
  const wrapped = await startServer({ ...options, args: wrapArgs(options, server) });
  try {
    return await measure(direct, wrapped);
  } finally {
    await direct.close();
    await wrapped.close();
  }
}

/** As JSON, pages have facts that tell whether they are complete. */
function wrapArgs({ main }: WrapOptions, server: readonly string[]): string[] {
  return [main, "mcp", "wrap", "--format", "json", "--total", "100000000", "--", process.execPath, ...server];
}
