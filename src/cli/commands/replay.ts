import { ContextError } from "../../errors.ts";
import { replayPolicies } from "../../replay/index.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { checkPageTarget, writePage } from "../replay/page/write-page.ts";
import { replayFiles } from "../replay/replay-files.ts";
import { reportJson, reportText } from "../replay/report.ts";
import { findSessionFiles } from "../replay/session-files.ts";
import { readSettings } from "../replay/settings.ts";
import { trustOption } from "../trust.ts";

export const replayCommand: Command = defineCommand({
  arguments: [
    { name: "PATH", repeated: true, summary: "a recorded session, or a directory with *.jsonl and *.json" },
  ],
  options: {
    window: { value: "N[,N...]", list: true, summary: "the model's limit in tokens (default: 200000)" },
    policy: {
      ...{ value: "NAME[,NAME...]", list: true, choices: replayPolicies },
      summary: "how histories are trimmed (default: none,rfc,economic)",
    },
    reserve: { value: "N", summary: "tokens kept free for the answer (default: the configuration's, 16000)" },
    "prefix-tokens": {
      value: "N",
      summary:
        "tools and system text that are not in the file (default: 20000, or 0 where the file has them)",
    },
    keep: {
      value: "N",
      summary: "assistant turns that are trimmed last (default: the configuration's, 10)",
    },
    counter: counterOptions.counter,
    model: {
      ...counterOptions.model,
      summary: "the model that is meant: its counter, prices and cache rules",
    },
    html: { value: "FILE", summary: "write a page with the timeline of every session" },
    ...trustOption,
  },
  details: `Runs every assistant turn of recorded sessions through each policy and tells what the input would have been billed,
in tokens of uncached input, and as a multiple of what it costs to trim nothing (policy none, always computed).
Breaks are calls that read less from the prompt cache than the call before left there; kept is the mean share of
the history that can still be read; over are calls larger than the window without the reserve.
Sessions: messages or items of OpenAI's responses, one a line, Claude Code and Codex sessions, Anthropic and OpenAI
requests. What providers would refuse in them, such as a call without a result, is mended first. A session without
an assistant turn is named and left out; so is a file that cannot be read, and then the exit code is 1.
--model chooses the counter, prices and cache rules; without it exact:o200k and Anthropic's. The page works
without a network; it holds numbers, file names and the first words of each session.`,
  examples: [
    { line: "plimsoll replay ~/.claude/projects/my-project", meaning: "what trimming would have saved" },
    {
      line: "plimsoll replay run.jsonl --window 64000,128000 --html replay.html",
      meaning: "two windows, and a page to look at",
    },
    {
      line: "plimsoll replay runs --policy none,economic,gentle,frugal",
      meaning: "how much of a history each keeps",
    },
    { line: "plimsoll replay runs --json | jq '.results[]'", meaning: "for programs" },
  ],
  async run(call) {
    const { arguments: paths, options, cwd, output } = call;
    const settings = await readSettings(call);
    const found = await findSessionFiles(paths, cwd);
    const target = options.html;
    if (target !== undefined) await checkPageTarget(target, { call, inputs: found.files });
    const report = await replayFiles(found, { settings, call });
    if (report.sessions.length === 0) {
      const message = report.idle > 0 ? "no session has an assistant turn" : "no session could be read";
      throw new ContextError("unreadable_input", message, {
        hint: "Name session files, or directories that hold *.jsonl or *.json files.",
      });
    }
    if (target !== undefined) await writePage(target, report, call);
    return {
      json: reportJson(report),
      get text() {
        return reportText(report, output.style);
      },
      failed: report.skipped > 0,
    };
  },
});
