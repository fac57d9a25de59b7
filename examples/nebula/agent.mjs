#!/usr/bin/env node
/** Stands in for an agent's command: reads a prompt on stdin, writes a file of its phase, and answers with what is scripted. It fails where
 *  the prompt does not tell what the phase builds on, as a real agent would have to guess. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const script = {
  model: {
    file: "src/link.ts",
    needs: [],
    answer: "A link has a code, a target and an end.",
    fabric: `entanglements:
  - { package: link, kind: type, signature: "Link { code, target, endsAt }", file: src/link.ts }
  - { package: link, kind: function, signature: "newCode(): string", file: src/link.ts }`,
  },
  store: {
    file: "src/store/save.ts",
    needs: ["Link { code, target, endsAt }"],
    answer: "Links are appended to a file, and synced before save() returns.",
    fabric: `entanglements:
  - { package: store, kind: function, signature: "save(link: Link): Promise<void>", file: src/store/save.ts }
  - { package: store, kind: function, signature: "find(code: string): Promise<Link | undefined>", file: src/store/find.ts }
notes:
  - { kind: decision, text: "One process writes: a lock file keeps a second one out." }`,
  },
  contract: {
    file: "src/contract.ts",
    needs: ["Link { code, target, endsAt }"],
    answer: "Requests and answers are types in src/contract.ts.",
    fabric: `entanglements:
  - { package: contract, kind: endpoint, signature: "POST /links { target } -> { code }", file: src/contract.ts }
discoveries:
  - { kind: limit, detail: "Targets longer than 2,000 characters are refused with 414.", affects: server }`,
  },
  server: {
    file: "src/server/server.ts",
    needs: ["save(link: Link)", "POST /links { target }", "refused with 414", "Links are appended to a file"],
    answer: "POST /links and GET /:code answer as the contract says.",
  },
  guide: { file: "docs/run.md", needs: ["POST /links", "a lock file keeps"], answer: "The guide is in docs/run.md." },
};

const prompt = readFileSync(0, "utf8");
const phase = process.env.PLIMSOLL_PHASE;
const { file, needs, answer, fabric } = script[phase];
const missing = needs.filter((text) => !prompt.includes(text));
if (missing.length > 0) {
  console.error(`${phase}: the prompt does not tell of ${missing.join(", ")}`);
  process.exit(1);
}
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${answer} ${new Date().toISOString()}\n`);
console.log(answer);
if (fabric !== undefined) console.log(`\n\`\`\`fabric\n${fabric}\n\`\`\``);
