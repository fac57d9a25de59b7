import type { Pack, Profile } from "../../packs/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { chooseCounter, counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Style } from "../output.ts";
import { renderTable } from "../table.ts";
import { contentOptions, loadPacksContent } from "./load-content.ts";
import { tellProblems } from "./tell-problems.ts";
import { type TierTokens, tierTokens } from "./tier-tokens.ts";

export const listCommand: Command = defineCommand({
  options: {
    profile: { value: "ID", summary: "in the order and with the weights of this profile" },
    ...contentOptions,
    ...counterOptions,
  },
  details: `The packs in the order in which inject takes them: base packs, then by weight, then by id. Tokens are those of the
pack's texts in each tier, counted with bytes/4 unless a counter is chosen.`,
  examples: [
    { line: "plimsoll packs list", meaning: "what this project gets" },
    { line: "plimsoll packs list --profile frontend", meaning: "in another order" },
    { line: "plimsoll packs list --content examples/sap", meaning: "of another content directory" },
    { line: "plimsoll packs list --json | jq '.[] | {id, tokens}'", meaning: "for programs" },
  ],
  async run(call) {
    const content = await loadPacksContent(call);
    const failed = tellProblems(content.problems, call);
    const counter = await chooseCounter(call, "bytes/4");
    const rows = content.packs.map((pack) => describePack(pack, { counter, profile: content.profile }));
    return { json: rows, text: renderList(rows, counter.name, call.output.style), failed };
  },
});

export interface ListedPack {
  readonly id: string;
  readonly name: string;
  readonly layer: string;
  /** In the chosen profile. */
  readonly weight: number;
  readonly base: boolean;
  readonly overlaps: readonly string[];
  readonly tokens: TierTokens;
}

export function describePack(
  pack: Pack,
  { counter, profile }: { readonly counter: Counter; readonly profile: Profile },
): ListedPack {
  const { id, name, layer, base, overlaps } = pack;
  const weight = profile.packs.find((each) => each.id === id)?.weight || pack.weight;
  return { id, name, layer, weight, base, overlaps, tokens: tierTokens(pack, counter) };
}

function renderList(packs: readonly ListedPack[], counter: string, style: Style): string {
  if (packs.length === 0) return "there are no packs here";
  const rows = packs.map(({ id, name, layer, weight, base, overlaps, tokens }) => [
    ...[printable(id), printable(name), layer, `${weight}${base ? " base" : ""}`],
    ...[tokens.core, tokens.detail, tokens.extended].map(formatNumber),
    printable(overlaps.join(", ")),
  ]);
  const lines = renderTable(
    [["pack", "name", "layer", "weight", "core", "detail", "extended", "overlaps"], ...rows],
    ["left", "left", "left", "left", "right", "right", "right", "left"],
  );
  return [style.dim(lines[0]!), ...lines.slice(1), style.dim(`tokens by ${counter}`)].join("\n");
}
