import type { CompressInput } from "../../session/index.ts";
import { fileSize, listNames, numbered, shortened } from "../frame/phrases.ts";

/** `Read src/store.ts (1234 lines, 45KB), lines 1-200. Starts: import { open }… Ends: return rows; }. Sections: createStore, migrate` */
export function compressReadFile({ data }: CompressInput): string {
  const path = shortened(String(data.path ?? "?"), 100);
  const size = typeof data.size === "number" ? fileSize(data.size) : "?B";
  if (data.binary === true) return `Read ${path} (binary, ${size})`;
  const lines = Array.isArray(data.lines) ? data.lines.filter((line) => typeof line === "string") : [];
  const texts = lines.filter((line) => line.trim() !== "");
  const sections = sectionsOf(lines);
  return [
    `Read ${path} (${linesIn(data)}, ${size})${rangeOf(data)}.`,
    ...(texts.length > 0 ? [`Starts: ${sentence(texts[0] ?? "")}`] : []),
    ...(texts.length > 1 ? [`Ends: ${sentence(texts.slice(1).slice(-2).join(" "))}`] : []),
    ...(sections.length > 0 ? [`Sections: ${listNames(sections, 5)}`] : []),
  ].join(" ");
}

function linesIn({ total_lines }: CompressInput["data"]): string {
  return typeof total_lines === "number" ? numbered(total_lines, ["line", "lines"]) : "? lines";
}

function sentence(text: string): string {
  const short = shortened(text, 40);
  return short.endsWith("…") ? short : `${short}.`;
}

/** Nothing where the whole file was read. */
function rangeOf({ first_line, returned, total_lines }: CompressInput["data"]): string {
  if (typeof first_line !== "number" || typeof returned !== "number" || returned === total_lines) return "";
  return returned === 0 ? ", no lines" : `, lines ${first_line}-${first_line + returned - 1}`;
}

/** What begins a part of a file at the left margin, in the languages most projects are written in: a name, mechanically found. */
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

function sectionsOf(lines: readonly string[]): string[] {
  const names = lines.flatMap((line) => {
    const start = line.slice(0, 200);
    for (const beginning of beginnings) {
      const name = beginning.exec(start)?.[1];
      if (name !== undefined) return shortened(name, 40);
    }
    return [];
  });
  return [...new Set(names)];
}
