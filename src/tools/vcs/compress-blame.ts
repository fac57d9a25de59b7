import type { CompressInput } from "../../session/index.ts";
import { numbered, shortened } from "../frame/phrases.ts";

/** `Blame src/store.ts: 1234 lines, 4 authors, newest 2026-11-02` */
export function compressBlame({ data }: CompressInput): string {
  const { authors, newest, total } = data;
  const facts = [
    numbered(Number(total ?? data.returned ?? 0), ["line", "lines"]),
    ...(typeof authors === "number" ? [numbered(authors, ["author", "authors"])] : []),
    ...(typeof newest === "string" ? [`newest ${newest}`] : []),
  ];
  return `Blame ${shortened(String(data.path ?? "?"), 100)}: ${facts.join(", ")}`;
}
