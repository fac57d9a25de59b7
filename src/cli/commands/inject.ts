import { onOverflows, scopes } from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import { verbosities } from "../../text/index.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { prepareInject } from "../inject/prepare.ts";
import { runInject } from "../inject/run-inject.ts";
import { trustOption } from "../trust.ts";

/** Each of these is a way to run of its own. */
const ways = ["status", "check", "uninstall", "prune", "watch"] as const;
/** What a run that only looks cannot take. */
const writingFlags = ["dry-run", "stats", "force"] as const;

export const injectCommand: Command = defineCommand({
  options: {
    scope: { value: "SCOPE", choices: scopes, summary: "where to write (default: project)" },
    global: { summary: "short for --scope global: the files under HOME, clipboard and exports" },
    tool: { value: "ID[,ID...]", list: true, summary: "only these AI tools" },
    all: { summary: "every AI tool that is known" },
    profile: { value: "ID", summary: "the order of packs" },
    lang: { value: "LANGUAGE", summary: "language of the packs" },
    verbosity: { value: "LEVEL", choices: verbosities, summary: "how many tiers of each pack" },
    "on-overflow": {
      value: "WAY",
      choices: onOverflows,
      summary: "what gives way when a budget is exceeded",
    },
    ...counterOptions,
    content: {
      value: "DIR",
      summary: "packs, profiles and adapters of this directory instead of the embedded ones",
    },
    "dry-run": { summary: "show the changes as a unified diff, write nothing" },
    stats: { summary: "show a table: packs, tokens and budget of each tool" },
    status: { summary: "show how each file stands, write nothing" },
    check: { summary: "like --status, exit 1 unless everything is current and within limits" },
    prune: { summary: "also remove blocks and files of ours that no chosen tool wants any more" },
    uninstall: { summary: "take the blocks and files away again" },
    force: { summary: "overwrite blocks that were edited by hand and files that are not ours" },
    watch: { summary: "run again whenever the content changes" },
    ...trustOption,
  },
  details: `Writes the packs into the files that AI tools read, each within its own budget, between markers; what people
wrote around them stays byte for byte. Without --tool: the tools of the configuration, else those whose files are
here, else claude-code and agents-md. A tool that reads AGENTS.md gets no second copy in a file of its own where AGENTS.md
gets one, unless own_files of the configuration names it. A token of a budget is 4 bytes unless a counter is chosen.`,
  examples: [
    { line: "plimsoll inject --dry-run --stats", meaning: "what would be written, and how much it weighs" },
    { line: "plimsoll inject", meaning: "write it into this project" },
    { line: "plimsoll inject --tool claude-code --verbosity standard", meaning: "one tool, fewer details" },
    { line: "plimsoll inject --global --tool chatgpt", meaning: "a text for the clipboard" },
    { line: "plimsoll inject --check", meaning: "in CI: fail when a file is stale, too large or left over" },
    { line: "plimsoll inject --prune", meaning: "write, and remove what an earlier choice of tools left" },
    { line: "plimsoll inject --uninstall", meaning: "give the original files back" },
  ],
  async run(call) {
    const { options } = call;
    refuseCombinations(options);
    if (options.watch === true) {
      const { watchInject } = await import("../inject/watch.ts");
      return watchInject(call);
    }
    const prepared = await prepareInject(call);
    if (options.status === true || options.check === true) {
      const { reportStatus } = await import("../inject/run-status.ts");
      return reportStatus(prepared, call);
    }
    if (options.uninstall === true) {
      const { runUninstall } = await import("../inject/run-uninstall.ts");
      return runUninstall(prepared, call);
    }
    return runInject(prepared, call);
  },
});

function refuseCombinations(options: Readonly<Record<string, unknown>>): void {
  const given = (names: readonly string[]) =>
    names.filter((name) => options[name] === true).map((name) => `--${name}`);
  const chosen = given(ways);
  if (chosen.length > 1) throw new ContextError("usage", `${chosen.join(" and ")} exclude each other`);
  const looking = given(["status", "check"])[0];
  const writing = given(writingFlags)[0];
  if (looking !== undefined && writing !== undefined) {
    throw new ContextError("usage", `${looking} writes nothing, so it does not go with ${writing}`);
  }
  if (options.global === true && options.scope === "project") {
    throw new ContextError("usage", "--global and --scope project exclude each other");
  }
  if (options.all === true && options.tool !== undefined) {
    throw new ContextError("usage", "--all and --tool exclude each other");
  }
}
