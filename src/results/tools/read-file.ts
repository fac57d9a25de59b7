import type { Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { CutText } from "../../core/text/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData, type ToolResult } from "../session/index.ts";
import { createWindow, defineTool, type ToolAnswer } from "./define-tool.ts";
import {
  addCutNote,
  failure,
  formatCount,
  formatSize,
  listLate,
  listNames,
  quoteArgument,
  type Run,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import { containPath, isDenied, openRegular } from "./source/contained-path.ts";
import { refuseSecret } from "./source/secret-paths.ts";
import { openLines, sampleEncoding, type TextLines } from "./source/text-encoding.ts";

export const createReadFile: (place: ToolPlace) => BudgetedTool<"read_file"> = defineTool({
  name: "read_file",
  description: "Read a text file or a range of its lines.",
  parameters: {
    path: { type: "string", description: "File to read, relative to the root.", required: true },
    start_line: { type: "integer", description: "First line to read, from 1.", default: 1, minimum: 1 },
    end_line: {
      type: "integer",
      description: "Last line to read. Default: the last one of the file.",
      minimum: 1,
    },
    encoding: {
      type: "string",
      description: "Default: detected (utf-8, utf-16 with a byte order mark, else latin1).",
    },
    max_size: {
      type: "integer",
      description: "Most characters of text to return. Use offset for the rest.",
      default: 100_000,
      minimum: 1,
    },
    max_line_length: {
      type: "integer",
      description: "Longer lines are cut here and say how many characters are missing.",
      default: 2_000,
      minimum: 1,
      maximum: 100_000,
    },
    start_column: {
      type: "integer",
      description: "First character of each line, from 1. Use it to read the rest of a cut line.",
      default: 1,
      minimum: 1,
    },
  },
  compress: compressReadFile,
  renderText: renderLines,
  async run(values, run) {
    const { start_line, end_line = start_line } = values;
    if (end_line < start_line) {
      return failure("invalid_argument", `end_line ${end_line} is before start_line ${start_line}.`);
    }
    const contained = await containPath(run.root, values.path);
    if (isFailure(contained)) return contained;
    const refused = await refuseSecret(run, contained);
    if (refused !== undefined) return refused;
    let handle: FileHandle | undefined;
    try {
      handle = await openRegular(contained.real, run.root);
      return await readOpened(handle, run, { ...values, path: contained.path });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === undefined) throw error;
      if (code === "ENOENT") {
        return failure(
          "not_found",
          `${quoteArgument(values.path)} does not exist.`,
          "Use project_files to list existing files.",
        );
      }
      const reason = isDenied(error) ? "cannot be read: permission denied" : `cannot be read (${code})`;
      return failure("unreadable", `${quoteArgument(values.path)} ${reason}.`);
    } finally {
      await handle?.close();
    }
  },
});

interface ReadRequest {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number | undefined;
  readonly encoding: string | undefined;
  readonly max_size: number;
  readonly max_line_length: number;
  readonly start_column: number;
  readonly offset: number;
}

async function readOpened(handle: FileHandle, run: Run, request: ReadRequest): Promise<ToolAnswer> {
  const stats = await handle.stat();
  if (stats.isDirectory()) {
    return failure("unreadable", `${quoteArgument(request.path)} is a directory.`, "List it with project_files.");
  }
  if (!stats.isFile()) return failure("unreadable", `${quoteArgument(request.path)} is a pipe, socket or device.`);
  const encoding = request.encoding ?? (await sampleEncoding(handle));
  if (encoding === "binary")
    return {
      fields: {
        path: request.path,
        size: stats.size,
        mtime: `${stats.mtime.toISOString().slice(0, 19)}Z`,
        binary: true,
      },
      itemsName: "lines",
      items: [],
      offset: request.offset,
      total: 0,
      version: `${stats.size}-${stats.mtimeMs}`,
      warnings: [`This is a binary file of ${formatSize(stats.size)}. If it is text, name its encoding.`],
    };
  const { max_line_length: maxLineLength, start_column: startColumn } = request;
  const lines = openLines(handle, { encoding, maxLineLength, startColumn, signal: run.signal });
  if (lines === undefined) {
    const hint = "Use for example utf-8, utf-16le, latin1 or shift_jis.";
    return failure("invalid_argument", `${quoteArgument(encoding)} is not a known encoding.`, hint);
  }
  return readLines(lines, run, { ...request, stats });
}

/** The tool reads the file to its end to count its lines, unless time is up. */
async function readLines(
  lines: TextLines,
  run: Run,
  request: ReadRequest & { readonly stats: Stats },
): Promise<ToolResult> {
  const { start_line, end_line = Number.POSITIVE_INFINITY, offset, stats } = request;
  const window = createWindow<CutText>({ offset, maxCharacters: request.max_size });
  let line = 0;
  for await (const batch of lines.batches) {
    for (const each of batch) {
      line++;
      if (line >= start_line && line <= end_line) window.offer(() => each, each.text.length + 1);
    }
  }
  const late = run.timedOut();
  const cut = window.items.filter(({ omitted }) => omitted > 0).length;
  const next = `continue with start_column ${request.start_column + request.max_line_length}`;
  const cutNote = `${formatCount(cut, ["line is", "lines are"])} longer than ${request.max_line_length} characters and cut: raise max_line_length, or ${next}.`;
  return {
    fields: {
      path: request.path,
      size: stats.size,
      ...(late ? {} : { total_lines: line }),
      encoding: lines.encoding,
      first_line: start_line + offset,
      // A page that is made from a stored one has another offset, but the same `start_line`.
      ...(start_line > 1 ? { start_line } : {}),
    },
    itemsName: "lines",
    items: window.items.map(addCutNote),
    offset,
    total: late ? undefined : window.total(),
    more: (late && line < end_line) || window.more(),
    version: `${stats.size}-${stats.mtimeMs}`,
    warnings: [
      ...listLate(run, "the file"),
      ...(start_line > line && !late ? [`The file ends with line ${line}.`] : []),
      ...(cut === 0 ? [] : [cutNote]),
    ],
  };
}

/** Like `cat -n`, without blanks before the number. */
function renderLines(page: PageData): string {
  const { lines, start_line, offset, encoding = "utf-8" } = page;
  const first = Number(start_line ?? 1) + offset;
  const numbered = Array.isArray(lines) ? lines.map((line, index) => `${first + index}\t${line}`) : [];
  return [...numbered, ...(encoding === "utf-8" ? [] : [`[decoded as ${encoding}]`])].join("\n");
}

/** `Read src/store.ts (1234 lines, 45KB), lines 1-200. Starts: import { open }… Ends: return rows; }. Sections:
 *  createStore, migrate` */
function compressReadFile({ data }: CompressInput): string {
  const path = shortenLine(String(data.path ?? "?"), 100);
  const size = typeof data.size === "number" ? formatSize(data.size) : "?B";
  if (data.binary === true) return `Read ${path} (binary, ${size})`;
  const lines = Array.isArray(data.lines) ? data.lines.filter((line) => typeof line === "string") : [];
  const texts = lines.filter((line) => line.trim() !== "");
  const sections = findSections(lines);
  const { first_line: first, returned, total_lines: total } = data;
  const isWhole = typeof first !== "number" || typeof returned !== "number" || returned === total;
  const range = isWhole ? "" : returned === 0 ? ", no lines" : `, lines ${first}-${first + returned - 1}`;
  return [
    `Read ${path} (${typeof data.total_lines === "number" ? formatCount(data.total_lines, ["line", "lines"]) : "? lines"}, ${size})${range}.`,
    ...(texts.length > 0 ? [`Starts: ${endSentence(texts[0] ?? "")}`] : []),
    ...(texts.length > 1 ? [`Ends: ${endSentence(texts.slice(1).slice(-2).join(" "))}`] : []),
    ...(sections.length > 0 ? [`Sections: ${listNames(sections, 5)}`] : []),
  ].join(" ");
}

function endSentence(text: string): string {
  const short = shortenLine(text, 40);
  return short.endsWith("…") ? short : `${short}.`;
}

/** Finds names of definitions and headings at the left margin, in common languages. */
const beginnings: readonly RegExp[] = [
  /^#{1,3} +(.{1,60})/,
  /^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|enum|namespace) +([\w$]+)/,
  /^(?:export )?(?:const|let|var|type) +([\w$]+)(?: *[:=]| *<)/,
  /^(?:async )?(?:def|class) +(\w+)/,
  /^func +(?:\([^)]{0,60}\) *)?(\w+)/,
  /^(?:pub(?:\([^)]{0,20}\))? +)?(?:async )?(?:unsafe )?(?:fn|struct|enum|trait|mod) +(\w+)/,
  /^(?:public |private |protected |internal |static |final |abstract )*(?:class|interface|enum|record) +(\w+)/,
  /^\((?:cl-)?def(?:un|var|custom|macro|struct|n|n-|ine)? +\(?([^\s()]+)/,
];

function findSections(lines: readonly string[]): string[] {
  const names = lines.flatMap((line) => {
    const start = line.slice(0, 200);
    for (const beginning of beginnings) {
      const name = beginning.exec(start)?.[1];
      if (name !== undefined) return shortenLine(name, 40);
    }
    return [];
  });
  return [...new Set(names)];
}
