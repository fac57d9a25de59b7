/** Small projects with the same three rules, written for one tool each. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export type Kind = "empty" | "plimsoll" | "ruler" | "rulesync";

const rules: readonly (readonly [id: string, text: string])[] = [
  ["style", rule("Style", "Names are spelled out; a function does one thing and says so in its name.")],
  ["api", rule("API", "Every endpoint validates its input and answers errors in one shape.")],
  ["review", rule("Review", "A change has a test that fails without it and a sentence that says why.")],
];

/** Writes the project anew: what an earlier run left is gone. */
export function writeProject(folder: string, kind: Kind): void {
  rmSync(folder, { recursive: true, force: true });
  const manifest = `${JSON.stringify({ name: "small", scripts: { test: "node --test" } }, null, 2)}\n`;
  const files = [["package.json", manifest], [".git/HEAD", "ref: refs/heads/main\n"], ...ruleFiles(kind)];
  for (const name of ["objects", "refs"]) mkdirSync(join(folder, ".git", name), { recursive: true });
  for (const [name, text] of files as [string, string][]) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

function ruleFiles(kind: Kind): [string, string][] {
  if (kind === "ruler") return rules.map(([id, text]) => [`.ruler/${id}.md`, text]);
  if (kind === "rulesync") {
    return rules.map(([id, text], at) => {
      const front = `---\nroot: ${at === 0}\ntargets: ["*"]\ndescription: ${id}\nglobs: ["**/*"]\n---\n`;
      return [`.rulesync/rules/${id}.md`, front + text];
    });
  }
  if (kind === "empty") return [];
  const packs = rules.flatMap(([id, text]): [string, string][] => [
    [`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\nname: ${id}\nweight: 70\n`],
    [`.plimsoll/packs/${id}/context.md`, text],
  ]);
  return [[".plimsoll/config.yaml", "title: Our rules\n"], ...packs];
}

function rule(title: string, sentence: string): string {
  return `## ${title}\n\n${Array.from({ length: 12 }, (_, at) => `- ${at + 1}. ${sentence}\n`).join("")}`;
}
