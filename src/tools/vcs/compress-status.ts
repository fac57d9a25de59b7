import type { CompressInput } from "../../session/index.ts";
import { shortened } from "../frame/phrases.ts";

/** `main [ahead 2]: 1 staged, 2 modified, 1 untracked`, or `main (clean) [ahead 2]` */
export function compressStatus({ data }: CompressInput): string {
  const branch = shortened(String(data.branch ?? "?"), 80);
  const distance = positive(data, ["ahead", "behind"]).map((name) => `${name} ${data[name]}`);
  const upstream = distance.length === 0 ? "" : ` [${distance.join(", ")}]`;
  const kinds = positive(data, ["staged", "modified", "untracked", "conflicts"]);
  if (kinds.length > 0)
    return `${branch}${upstream}: ${kinds.map((name) => `${data[name]} ${name}`).join(", ")}`;
  if (data.total === undefined && data.clean === undefined)
    return `${branch} (stopped before a change was found)${upstream}`;
  return `${branch} (clean)${upstream}`;
}

/** Only what there is some of. */
function positive(data: CompressInput["data"], names: readonly string[]): string[] {
  return names.filter((name) => typeof data[name] === "number" && data[name] !== 0);
}
