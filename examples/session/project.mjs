/** A small project, and a model that reads one of its files page by page. */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSession } from "plimsoll/session";
import { createTools } from "plimsoll/tools";
import { createProvider } from "../../scripts/provider/provider.mjs";

/** Opens a session with the tools of a project. A page has at most 1,000 tokens. */
export async function openSession() {
  const root = await mkdtemp(join(tmpdir(), "loop-"));
  const lines = Array.from({ length: 250 }, (_, index) => `export const value${index} = compute(${index});\n`);
  await writeFile(join(root, "long.ts"), lines.join(""));
  const budget = { total: 20_000, perToolCall: 1_000 };
  return createSession({ tools: createTools({ root }), format: "text", budget, now: Date.now });
}

/** The scripted model asks for a file, follows the notes to its end, and names a tool that does not exist on the way. */
export function scriptedModel() {
  return createProvider({
    answer({ step, results }) {
      if (step === 1) return { calls: [{ name: "read_fiel", input: { path: "long.ts" } }] };
      const next = /next: offset=(\d+)/.exec(results.at(-1) ?? "")?.[1];
      if (step > 0 && step !== 2 && next === undefined) return { text: `Read long.ts in ${results.length - 1} pages.` };
      const first = step === 2 ? /next: offset=(\d+)/.exec(results[0] ?? "")?.[1] : next;
      return { calls: [{ name: "read_file", input: { path: "long.ts", offset: Number(first ?? 0) } }] };
    },
  });
}
