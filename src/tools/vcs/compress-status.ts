import type { CompressInput } from "../../session/index.ts";
import { shortened } from "../frame/phrases.ts";

/** `main [ahead 2]: 1 staged, 2 modified, 1 untracked`, or `main (clean) [ahead 2]` */
export function compressStatus({ data }: CompressInput): string {
  const branch = shortened(String(data.branch ?? "?"), 80);
  const distance = [...counted(data, ["ahead"], "before"), ...counted(data, ["behind"], "before")].join(", ");
  const upstream = distance === "" ? "" : ` [${distance}]`;
  const changes = counted(data, ["staged", "modified", "untracked", "conflicts"], "after");
  if (changes.length === 0 && data.total === undefined && data.clean === undefined)
    return `${branch} (stopped before a change was found)${upstream}`;
  if (changes.length === 0) return `${branch} (clean)${upstream}`;
  return `${branch}${upstream}: ${changes.join(", ")}`;
}

/** Only what there is some of: `ahead 2`, `2 modified`. */
function counted(data: CompressInput["data"], names: readonly string[], place: "before" | "after"): string[] {
  return names.flatMap((name) => {
    const count = data[name];
    if (typeof count !== "number" || count === 0) return [];
    return place === "before" ? `${name} ${count}` : `${count} ${name}`;
  });
}
