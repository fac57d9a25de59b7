import { fabricExample } from "../report/fabric-example.ts";
import type { Nebula, Phase } from "./nebula.ts";

/** What an agent is asked to do for a phase: the last part of its prompt, the same bytes for the same files. */
export function renderTask(
  { goals, constraints }: Pick<Nebula, "goals" | "constraints">,
  { title, body }: Pick<Phase, "title" | "body">,
): string {
  const parts = [
    `# ${oneLine(title)}`,
    ...renderList("Goals of the whole", goals),
    ...renderList("Constraints", constraints),
    ...(body === "" ? [] : [body]),
    howToReport,
  ];
  return `${parts.join("\n\n")}\n`;
}

function renderList(heading: string, items: readonly string[]): string[] {
  const lines = items.map(oneLine).filter((line) => line !== "");
  return lines.length === 0 ? [] : [`## ${heading}\n\n${lines.map((line) => `- ${line}`).join("\n")}`];
}

/** A line break inside would end the heading or the item. */
function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}

const howToReport = `## How to report

End with an answer that says what was done. What other phases need to know goes into a fenced code block of the language \`fabric\`,
as here, with only the lists that you have something for:

\`\`\`fabric
${fabricExample}\`\`\``;
