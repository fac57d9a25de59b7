import type { CompressInput } from "../../session/index.ts";
import { countOf, listNames, shortened, wholeItems } from "../frame/phrases.ts";
import type { Commit } from "./vcs-log.ts";

/** `15 commits. Recent: 1a2b3c4 Add store, 5d6e7f8 Fix paging, +13 more` */
export function compressLog({ data }: CompressInput): string {
  const commits = wholeItems<Commit>(
    data.commits,
    ({ hash, message }) => typeof hash === "string" && typeof message === "string",
  );
  const count = countOf(data, ["commit", "commits"]);
  if (commits.length === 0) return data.total === 0 ? "No commits" : count;
  const recent = commits.map(({ hash, message }) => `${hash} ${shortened(message.split("\n")[0] ?? "", 60)}`);
  return `${count}. Recent: ${listNames(recent, 2)}`;
}
