import type { Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { TextDecoder } from "node:util";
import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import type { CutText } from "../../text/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure, shown } from "../frame/failure.ts";
import { fileSize, numbered, withCutNote } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow } from "../frame/window.ts";
import { containPath } from "../source/contained-path.ts";
import { isDenied } from "../source/denied.ts";
import { openRegular } from "../source/open-regular.ts";
import { refuseSecret } from "../source/secret-paths.ts";
import { createDecoder, sampleEncoding } from "../source/text-encoding.ts";
import { compressReadFile } from "./compress-read-file.ts";
import { readLines } from "./text-lines.ts";

const parameters = {
  path: { type: "string", description: "File to read, relative to the root.", required: true },
  start_line: { type: "integer", description: "First line to read, from 1.", default: 1, minimum: 1 },
  end_line: {
    type: "integer",
    description: "Last line to read. Default: the last one of the file.",
    minimum: 1,
  },
  encoding: {
    type: "string",
    description: "Default: by the bytes (utf-8, utf-16 with a byte order mark, else latin1).",
  },
  max_size: {
    type: "integer",
    description: "Characters of text to return at most. The rest is reached with offset.",
    default: 100_000,
    minimum: 1,
  },
  max_line_length: {
    type: "integer",
    description: "Longer lines are cut here, with the number of characters left out.",
    default: 2_000,
    minimum: 1,
    maximum: 100_000,
  },
  start_column: {
    type: "integer",
    description: "First character of each line to read, from 1: the rest of a line that was cut.",
    default: 1,
    minimum: 1,
  },
} as const;

export function createReadFile(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "read_file",
      description:
        "Read a text file, or a range of its lines; lines[0] is line first_line. A binary file gives its size and kind only.",
      parameters,
      compress: compressReadFile,
      run: readFile,
    },
    place,
  );
}

async function readFile(values: ToolValues<typeof parameters>, run: Run): Promise<ToolResult | ToolFailure> {
  const { start_line, end_line = start_line } = values;
  if (end_line < start_line) {
    return failure("invalid_argument", `end_line ${end_line} lies before start_line ${start_line}.`);
  }
  const contained = await containPath(run.root, values.path);
  if (isFailure(contained)) return contained;
  const refused = await refuseSecret(run, contained);
  if (refused !== undefined) return refused;
  const handle = await openRegular(contained.real).catch((error: unknown) => error);
  if (!isHandle(handle)) return unreadable(values.path, handle);
  try {
    return await readOpened(handle, run, { ...values, path: contained.path });
  } catch (error) {
    return unreadable(values.path, error);
  } finally {
    await handle.close();
  }
}

interface Request {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number | undefined;
  readonly encoding: string | undefined;
  readonly max_size: number;
  readonly max_line_length: number;
  readonly start_column: number;
  readonly offset: number;
}

function isHandle(value: unknown): value is FileHandle {
  return typeof value === "object" && value !== null && "fd" in value;
}

async function readOpened(handle: FileHandle, run: Run, request: Request): Promise<ToolResult | ToolFailure> {
  const stats = await handle.stat();
  if (stats.isDirectory()) {
    return failure("unreadable", `${shown(request.path)} is a directory.`, "List it with project_files.");
  }
  if (!stats.isFile()) return failure("unreadable", `${shown(request.path)} is a pipe, socket or device.`);
  const encoding = request.encoding ?? (await sampleEncoding(handle));
  if (encoding === "binary") return describeBinary(request, stats);
  const decoder = createDecoder(encoding);
  if (decoder === undefined) {
    const hint = "Such as utf-8, utf-16le, latin1, shift_jis.";
    return failure("invalid_argument", `${shown(encoding)} is no encoding.`, hint);
  }
  return readText(handle, run, { ...request, stats, decoder });
}

interface TextRequest extends Request {
  readonly stats: Stats;
  readonly decoder: TextDecoder;
}

/** The file is read to its end for the number of its lines, unless time is up. */
async function readText(handle: FileHandle, run: Run, request: TextRequest): Promise<ToolResult> {
  const { start_line, end_line = Number.POSITIVE_INFINITY, offset, stats } = request;
  const window = createWindow<CutText>({ offset, maxCharacters: request.max_size });
  const options = {
    decoder: request.decoder,
    maxLineLength: request.max_line_length,
    startColumn: request.start_column,
    signal: run.signal,
  };
  let line = 0;
  for await (const batch of readLines(handle, options)) {
    for (const each of batch) {
      line++;
      if (line >= start_line && line <= end_line) window.offer(() => each, each.text.length + 1);
    }
  }
  const late = run.timedOut();
  return {
    fields: {
      path: request.path,
      size: stats.size,
      ...(late ? {} : { total_lines: line }),
      encoding: request.decoder.encoding === "windows-1252" ? "latin1" : request.decoder.encoding,
      first_line: start_line + offset,
    },
    itemsName: "lines",
    items: window.items.map(withCutNote),
    offset,
    total: late ? undefined : window.total(),
    more: (late && line < end_line) || window.more(),
    version: `${stats.size}-${stats.mtimeMs}`,
    warnings: [
      ...(late ? [lateWarning(run, "the file")] : []),
      ...(start_line > line && !late ? [`The file ends with line ${line}.`] : []),
      ...cutWarnings(window.items, request),
    ],
  };
}

function cutWarnings(lines: readonly CutText[], { max_line_length, start_column }: Request): string[] {
  const cut = lines.filter(({ omitted }) => omitted > 0).length;
  if (cut === 0) return [];
  const next = `go on with start_column ${start_column + max_line_length}`;
  return [
    `${numbered(cut, ["line is", "lines are"])} longer than ${max_line_length} characters and cut: raise max_line_length, or ${next}.`,
  ];
}

function describeBinary({ path, offset }: Request, { size, mtime, mtimeMs }: Stats): ToolResult {
  return {
    fields: { path, size, mtime: `${mtime.toISOString().slice(0, 19)}Z`, binary: true },
    itemsName: "lines",
    items: [],
    offset,
    total: 0,
    version: `${size}-${mtimeMs}`,
    warnings: [`A binary file of ${fileSize(size)}: no text to read. Name an encoding if it is text.`],
  };
}

function unreadable(path: string, error: unknown): ToolFailure {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined) throw error;
  if (code === "ENOENT") {
    return failure("not_found", `${shown(path)} does not exist.`, "project_files lists what does.");
  }
  const reason = isDenied(error) ? "may not be read" : `cannot be read (${code})`;
  return failure("unreadable", `${shown(path)} ${reason}.`);
}
