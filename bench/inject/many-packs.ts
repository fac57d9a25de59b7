/** 500 packs of 20 KB and ten adapters, as a content directory. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const PACKS = 500;
export const PACK_BYTES = 20_000;
export const ADAPTERS = 10;

/** `unlimited`: every file gets everything. `mixed`: budgets, tiers and plain prose in turn. */
export const adapterSets = ["unlimited", "mixed"] as const;
export type AdapterSet = (typeof adapterSets)[number];

const mixed: readonly string[] = [
  "max_tokens: 2000000",
  "max_bytes: 32768",
  "max_tokens: 100000\non_overflow: thin",
  "verbosity: standard",
  "verbosity: minimal\nmax_bytes: 14000",
  "format: plain-prose",
  "format: plain-prose\nverbosity: minimal",
  "limits:\n  - { value: 1000000, unit: chars, kind: hard, scope: file, evidence: docs, checked: 2026-11-15 }",
  "limits:\n  - { value: 2000, unit: lines, kind: hard, scope: file, evidence: docs, checked: 2026-11-15 }",
  "on_overflow: thin\nmax_bytes: 5000000",
];

export function writeManyPacks(folder: string, set: AdapterSet): void {
  for (let at = 0; at < PACKS; at++) {
    const id = `pack-${String(at).padStart(3, "0")}`;
    writeAll(join(folder, "packs", id), {
      "pack.yaml": `id: ${id}\nname: Pack ${at}\nweight: ${PACKS - at}\n`,
      "context.md": packText(at),
    });
  }
  for (let at = 0; at < ADAPTERS; at++) {
    const target = `targets:\n  - { scope: project, path: tool-${at}/RULES.md, mode: replace-section, section: context }\n`;
    const own = set === "mixed" ? `${mixed[at]}\n` : "";
    writeAll(join(folder, "adapters"), {
      [`tool-${at}.yaml`]: `id: tool-${at}\nname: Tool ${at}\ntype: file-inject\n${target}${own}`,
    });
  }
}

/** Half core, a quarter detail, a quarter extended; a table and a fence in each, as packs have. */
function packText(at: number): string {
  const part = (title: string, bytes: number) => {
    const line = `- In ${title} of pack ${at} the \`value_${at}\` is **checked** before it is [stored](https://example.com/${at}).\n`;
    const fence = "```ts\nconst kept = values.filter((value) => value > 0);\n```\n";
    const table = "| name | meaning |\n| --- | --- |\n| a | the first |\n| b | the second |\n";
    const body = `## ${title} ${at}\n\n${table}\n${fence}\n`;
    return body + line.repeat(Math.max(1, Math.round((bytes - body.length) / line.length)));
  };
  return [
    part("Rules", PACK_BYTES / 2),
    `<!-- verbosity:detail -->\n${part("Details", PACK_BYTES / 4)}`,
    `<!-- verbosity:extended -->\n${part("Background", PACK_BYTES / 4)}`,
  ].join("\n");
}

function writeAll(folder: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}
