import type { CompressInput } from "../../session/index.ts";
import { countOf, shortened } from "../frame/phrases.ts";

/** `Blame src/store.ts: 1234 lines, 4 authors, newest 2026-11-02` */
export function compressBlame({ data }: CompressInput): string {
  const { authors, newest, total } = data;
  const facts = [
    `${total ?? countOf(data)} lines`,
    ...(typeof authors === "number" ? [`${authors} ${authors === 1 ? "author" : "authors"}`] : []),
    ...(typeof newest === "string" ? [`newest ${newest}`] : []),
  ];
  return `Blame ${shortened(String(data.path ?? "?"), 100)}: ${facts.join(", ")}`;
}
