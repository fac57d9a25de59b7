import { ContextError } from "../../core/errors.ts";
import { countNoun, printable, readAge, shownTime } from "../../core/text/index.ts";
import { lookInStore, storePath } from "../../host/index.ts";
import { findAttempts } from "../../plans/nebula/index.ts";
import type { StoredSession } from "../../results/session/index.ts";
import { type Command, defineCommand, type OptionSpecs } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

const options = {
  all: { summary: "delete every session, and the folders of finished agent runs" },
  "older-than": { value: "AGE", summary: "delete sessions that were not used for this long: 7d, 12h, 30m" },
  "dry-run": { summary: "show what would be deleted; delete nothing" },
  ...storeOptions,
} as const satisfies OptionSpecs;

export const rmCommand: Command = defineCommand({
  arguments: [{ name: "ID", optional: true, repeated: true, summary: "the sessions" }],
  options,
  details: `Deletes sessions: token use, work log, all results, and what a trimmer, an intake or a plugin stored under the
same id. Then rewrites the store's file, so that none of their bytes remain in it or in its log. Servers of one directory
share results; these are deleted with the session whose id they carry. A session that a server has open is not deleted.`,
  examples: [
    { line: "plimsoll session rm mcp-shop-0f3a77c2d1", meaning: "one session" },
    { line: "plimsoll session rm --older-than 7d", meaning: "sessions that were not used for a week" },
    { line: "plimsoll session rm --all --dry-run", meaning: "what --all would delete" },
  ],
  async run(call) {
    const { describeUse, removeSessions, unknownSession } = await import("../../clients/remove-sessions.ts");
    const { arguments: ids, options: given } = call;
    const all = given.all === true;
    const age = given["older-than"];
    const count = [ids.length > 0, all, age !== undefined].filter(Boolean).length;
    if (count !== 1) {
      throw new ContextError("usage", count === 0 ? "no session is named" : "too many choices", {
        hint: "Name sessions, or use --all or --older-than AGE.",
      });
    }
    const before = age === undefined ? undefined : new Date(Date.now() - readAge(age, "--older-than")).toISOString();
    const choice = { ids, all, before };
    const dryRun = call.options["dry-run"] === true;
    const result = await lookInStore(await storePath(call.options.store, call), (store) =>
      removeSessions(store, choice, { dryRun, env: call.env }),
    );
    const { deleted, kept } = result ?? { deleted: [], kept: [] };
    if (result === undefined && choice.ids.length > 0) throw unknownSession(choice.ids[0]!, []);
    const attempts = choice.all ? await findAttempts(call.env) : undefined;
    const { ended = [], running = [] } = attempts ?? {};
    if (!dryRun) await attempts?.removeEnded();
    for (const { id, pid } of kept) call.output.note(describeUse(id, pid));
    if (running.length > 0)
      call.output.note(`${countNoun(running.length, "agent")} still running, so the folders are kept`);
    const told = deleted.map(({ id, lastUsed, calls }) => ({ id, calls, last_used: lastUsed ?? null }));
    const json = { dry_run: dryRun, deleted: told, kept, run_folders: ended };
    return { json, text: renderReport(deleted, { runFolders: ended.length, dryRun }) };
  },
});

function renderReport(
  deleted: readonly StoredSession[],
  { runFolders, dryRun }: { readonly runFolders: number; readonly dryRun: boolean },
): string {
  const verb = dryRun ? "would delete" : "deleted";
  const lines = deleted.map(({ id, lastUsed, calls }) => {
    const used = lastUsed === undefined ? "" : `, last used ${shownTime(lastUsed)}`;
    return `${verb} ${printable(id)} (${countNoun(calls, "call")}${used})`;
  });
  if (runFolders > 0) lines.push(`${verb} ${countNoun(runFolders, "run folder")}`);
  return lines.length === 0 ? "nothing to delete" : lines.join("\n");
}
