/** Command lines of known agents: how each takes a model, what it may do, and a limit on its cost. */
import { ContextError } from "../../core/errors.ts";
import { didYouMean } from "../../core/text/index.ts";
import type { Allow } from "../../host/index.ts";

/** How one known agent is run. */
export interface AgentPreset {
  /**
   * A command line that reads the prompt from stdin. A part in brackets is left out if its value is not set. `{allow}`
   * is one of the texts below, and `{session}` an earlier session that goes on.
   */
  readonly command: string;
  /** Options or variables for each level. `{checks}` in them grants single commands. */
  readonly allow: Readonly<Record<Allow, string>>;
  /** Returns what grants commands that it may run at the level `edit`. Absent if it cannot be told. */
  readonly grant?: ((commands: readonly string[]) => string | undefined) | undefined;
  /** The form of the events that it prints, one on each line. */
  readonly prints: AgentEvents;
  /** An extended regular expression of lines that are not stored, because they only repeat others. */
  readonly repeats?: string | undefined;
  /** The tool in `plimsoll audit`, which knows the files that the agent loads by itself. */
  readonly tool: string;
  /** A model of the family that the agent uses by default. Absent if it depends on its settings. */
  readonly model?: string | undefined;
}

export type AgentEvents = "claude" | "codex" | "opencode" | "gemini" | "pi";

const onlyFiles = "read,grep,find,ls";

/**
 * How known agents are run, by name. Each agent reads the prompt from stdin and prints what it does to stdout, as events
 * in JSON.
 *
 * @example
 * ```ts
 * import { agentPresets } from "plimsoll/agent";
 *
 * console.log(Object.keys(agentPresets), agentPresets.claude?.command, agentPresets.claude?.allow.edit);
 * ```
 */
export const agentPresets: Readonly<Record<string, AgentPreset>> = {
  // Reads stdin unless it is a terminal: code.claude.com/docs/en/cli-reference, 2026-09. The rules of `read` also win
  // over rules in settings files that allow edits; seen with 2.1.325, 2026-11. Results of tools are in lines of "user",
  // with whole files; seen with 2.1.327, 2026-11.
  claude: {
    command:
      "claude -p --verbose --output-format=stream-json {allow} [--resume={session}] [--model={model}] [--max-budget-usd={budget}] [{args}]",
    allow: {
      read: "--permission-mode=default '--disallowedTools=Edit(**),Write(**),NotebookEdit(**)'",
      edit: "--permission-mode=acceptEdits[ {checks}]",
      all: "--permission-mode=bypassPermissions",
    },
    grant(commands) {
      const rules = commands.map((each) => `Bash(${each})`).join(",");
      return rules === "" ? undefined : quote(`--allowedTools=${rules}`);
    },
    prints: "claude",
    repeats: '^\\{"type":"user"',
    tool: "claude-code",
    model: "claude-sonnet-5",
  },
  // "-" makes stdin the prompt: developers.openai.com/codex/noninteractive, 2026-09. Its events leave out commands that
  // the sandbox stopped; only its log has them; seen with 0.166, 2026-11. `resume` has no --sandbox, so the level is a
  // setting; it takes the folder that it starts in; seen with 0.169, 2026-11.
  codex: {
    command:
      "RUST_LOG=error,codex_sandboxing::violation=warn codex exec --json {allow} [--model={model}] [{args}] [resume {session}] -",
    allow: {
      read: "-c sandbox_mode=read-only",
      edit: "-c sandbox_mode=workspace-write",
      all: "-c sandbox_mode=danger-full-access",
    },
    prints: "codex",
    tool: "codex-cli",
    model: "gpt-5-codex",
  },
  // Without a message stdin is the message: packages/opencode/src/cli/cmd/run.ts, 2026-09. A model is PROVIDER/MODEL.
  // The variable is merged into its settings; seen with 1.18.33, 2026-11. Only its log has the API's errors.
  opencode: {
    command:
      "{allow} opencode run --format=json --print-logs --log-level=ERROR [--session={session}] [--model={model}] [{args}]",
    allow: {
      read: `OPENCODE_PERMISSION='{"edit":"deny","bash":"deny"}'`,
      edit: `OPENCODE_PERMISSION=[{checks}]`,
      all: `OPENCODE_PERMISSION='{"edit":"allow","bash":"allow","webfetch":"allow"}'`,
    },
    // The last rule that matches counts.
    grant: (commands) => {
      const bash = Object.fromEntries([["*", "deny"], ...commands.map((each) => [each, "allow"])]);
      return quote(JSON.stringify({ edit: "allow", bash: commands.length === 0 ? "deny" : bash }));
    },
    prints: "opencode",
    tool: "opencode",
  },
  // Without a terminal it reads stdin, up to 8 MB, and answers once: geminicli.com/docs/cli/headless, 2026-09. It allows
  // commands that begin with these words; seen with 0.61, 2026-11.
  gemini: {
    command: "gemini {allow} [{trust}] --output-format=stream-json [--resume={session}] [--model={model}] [{args}]",
    allow: {
      read: "--approval-mode=plan",
      edit: "--approval-mode=auto_edit[ {checks}]",
      all: "--approval-mode=yolo",
    },
    grant: (commands) =>
      commands.map((each) => quote(`--allowed-tools=run_shell_command(${each})`)).join(" ") || undefined,
    prints: "gemini",
    repeats: '^\\{"type":"(tool_result|message","timestamp":"[^"]*","role":"user)"',
    tool: "gemini-cli",
  },
  // Prepends stdin to the prompt, which is empty: packages/coding-agent/docs/cli.md of pi, 2026-09. Its own parser takes
  // a value only as the next word: packages/coding-agent/src/cli/args.ts. Each update has the whole message so far, and
  // no single command can be allowed; seen with 0.73.1, 2026-11.
  pi: {
    command: "pi -p --mode json {allow} [--session {session}] [--model {model}] [{args}]",
    allow: {
      read: `--tools ${onlyFiles}`,
      edit: `--tools ${onlyFiles},edit,write`,
      all: `--tools ${onlyFiles},edit,write,bash`,
    },
    prints: "pi",
    repeats: '^\\{"type":"(message_update|message_start|turn_end|agent_end|tool_execution_update|tool_execution_end)"',
    tool: "pi",
  },
};

export interface AgentChoice {
  /** One of the presets. */
  readonly agent?: string | undefined;
  /** Another command line. `{model}` in it is the model. */
  readonly command?: string | undefined;
  readonly model?: string | undefined;
  /** @default "edit" */
  readonly allow?: Allow | undefined;
  /** The most that the agent may cost, in dollars. Only some agents take it. */
  readonly budgetUsd?: number | undefined;
  /** More words for a preset. */
  readonly args?: readonly string[] | undefined;
  /** The session of an earlier run that goes on. */
  readonly session?: string | undefined;
  /** Commands that a preset may run at the level `edit`, exactly as they are. */
  readonly checks?: readonly string[] | undefined;
  /** Lets gemini run in a folder that it does not know, with the settings of that folder. */
  readonly trustFolder?: boolean | undefined;
}

/** Returns the command line of a preset, or the given command with its model. */
export function agentCommand(choice: AgentChoice): string {
  const { agent = "", command, model, allow = "edit", budgetUsd, args = [], session, checks = [] } = choice;
  const reason = model === undefined ? undefined : explainOption(model);
  if (reason !== undefined) throw new ContextError("usage", `the model "${model}" ${reason}`);
  if (choice.session !== undefined && !isSessionId(choice.session))
    throw new ContextError("usage", `the session ${JSON.stringify(choice.session)} is no id of a session`);
  if (command?.includes("{model}")) {
    if (model !== undefined) return command.replaceAll("{model}", () => quote(model));
    throw new ContextError("usage", "the agent's command contains {model}, but no model is chosen", {
      hint: "Name one with --model.",
    });
  }
  if (command !== undefined) return command;
  const preset = Object.hasOwn(agentPresets, agent) ? agentPresets[agent] : undefined;
  if (preset === undefined) {
    const names = Object.keys(agentPresets);
    const hint = [didYouMean(agent, names), `Choose from ${names.join(", ")}.`].filter(Boolean).join(" ");
    throw new ContextError("usage", `unknown agent "${agent}"`, { hint });
  }
  const values: Readonly<Record<string, string | undefined>> = {
    // A wildcard would allow more than the one command.
    checks: preset.grant?.(checks.filter((each) => /^[^*?()[\]{},\n\\]+$/.test(each))),
    session: session && quote(session),
    model: model && quote(model),
    // Claude Code takes no exponent.
    budget: budgetUsd === undefined ? undefined : String(Math.max(0.0001, Number(budgetUsd.toFixed(4)))),
    args: args.length === 0 ? undefined : args.map(quote).join(" "),
    trust: choice.trustFolder === true ? "--skip-trust" : undefined,
  };
  return preset.command
    .replace("{allow}", () => preset.allow[allow])
    .replace(/( ?)\[([^\]]*)\{(\w+)\}\]/g, (_, space: string, before: string, name: string) =>
      values[name] === undefined ? "" : `${space}${before}${values[name]}`,
    );
}

/** Returns why a value is refused: an agent could read it as an option. Returns undefined for any other value. */
export function explainOption(value: string): string | undefined {
  return value.trimStart().startsWith("-") ? 'starts with "-", so an agent could read it as an option' : undefined;
}

/** Whether an agent can only read it as the id of a session. It comes from what an agent printed, and some agents take it
 *  where they take options and paths too. */
export function isSessionId(value: unknown): value is string {
  return typeof value === "string" && /^\w[\w.:-]{0,199}$/.test(value);
}

/** Quotes a text as one word for a shell, if it needs quotes. */
export function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
