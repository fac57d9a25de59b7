import { resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import { exists, isStoreAddress, openStore, shownStore } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";

export const migrateCommand: Command = defineCommand({
  options: {
    from: { value: "PLACE", summary: "file or address of the store to copy" },
    to: { value: "PLACE", summary: "file or address of the new store, which must be empty" },
  },
  details: `Copies all records and streams with their times, then reads both stores and compares every value. The source
stays as it is. If a program writes to it during the copy, the comparison fails and says so. From PostgreSQL, it copies
the namespace of the address. Revisions are new, because nothing outside of a running program keeps them.`,
  examples: [
    {
      line: "plimsoll store migrate --from ~/.local/state/plimsoll/state.db --to postgres://plimsoll@db/team",
      meaning: "from a file to PostgreSQL",
    },
    { line: "plimsoll store migrate --from postgres://plimsoll@db/team --to state.db", meaning: "and back" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    const readPlace = (name: "from" | "to"): string => {
      const place = options[name];
      if (place === undefined) {
        throw new ContextError("usage", `--${name} is missing`, { hint: "Name a file or postgres://…" });
      }
      return isStoreAddress(place) ? place : resolve(cwd, place);
    };
    const [from, to] = [readPlace("from"), readPlace("to")];
    if (!isStoreAddress(from) && !(await exists(from))) {
      throw new ContextError("unreadable_input", "there is no such store", { file: shownStore(from, cwd, env) });
    }
    const { compareStores, copyStore, refuseFilled } = await import("../../host/store/copy-store.ts");
    const source = await openStore({ place: from });
    try {
      const target = await openStore({ place: to });
      try {
        await refuseFilled(target, shownStore(to, cwd, env));
        const copied = await copyStore(source, target, output.progress);
        await compareStores(source, target, output.progress);
        const { records, entries, characters } = copied;
        const text = `copied ${countNoun(records, "record")} and ${formatNumber(entries)} entries (${formatNumber(characters)} characters) to ${printable(shownStore(to, cwd, env))}; both stores have the same values`;
        return { json: { from: shownStore(from, cwd, env), to: shownStore(to, cwd, env), ...copied }, text };
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
});
