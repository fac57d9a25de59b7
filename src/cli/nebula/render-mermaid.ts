import type { Phase } from "../../agent/index.ts";

/** A `graph LR` with a subgraph a wave. Phases get short names of their own: ids may be words that Mermaid keeps for itself. */
export function renderMermaid(waves: readonly (readonly Phase[])[]): string {
  const names = new Map(waves.flat().map(({ id }, index) => [id, `p${index + 1}`]));
  const groups = waves.flatMap((wave, index) => [
    `  subgraph wave${index + 1}["wave ${index + 1}"]`,
    ...wave.map(({ id, title }) => `    ${names.get(id)}["${label(id)}<br/>${label(title)}"]`),
    "  end",
  ]);
  const arrows = waves
    .flat()
    .flatMap(({ id, dependsOn }) => dependsOn.map((on) => `  ${names.get(on)} --> ${names.get(id)}`));
  return ["graph LR", ...groups, ...arrows].join("\n");
}

/** What Mermaid or the page around it could take for more than text, as the entity codes that Mermaid knows. */
function label(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .replace(/["#&;<>\\`\p{Cc}]/gu, (character) => `#${character.codePointAt(0)};`);
}
