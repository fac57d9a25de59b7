import { resolve } from "node:path";
import { usageError } from "../../core/errors.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import {
  exists,
  homeDirectory,
  openDirectory,
  otherOwner,
  projectRoot,
  renderTable,
  shownPath,
  trustRecord,
} from "../../host/index.ts";
import { readProjectSettings } from "../../plans/index.ts";
import { type Call, type Command, type CommandResult, defineCommand } from "../command.ts";
import { createQuestions } from "../questions.ts";

export const trustCommand: Command = defineCommand({
  arguments: [{ name: "DIR", optional: true, summary: "a folder of the project (default: here)" }],
  options: {
    list: { summary: "list the projects that you trust" },
    revoke: { summary: "stop trusting the project" },
    yes: { summary: "do not ask" },
  },
  details: `Some settings of a project can start a program, read files outside of it, reach the network or change
prices: company, skills, prices, allow, guard and run in its configuration, addresses of sync:fetch in its packs,
and in nebulas the model and permissions of agents and a working directory outside of the project. They have no effect
until you trust them.
This command shows them and records the project's path and a hash of each setting in
$XDG_STATE_HOME/plimsoll/trust.json (~/.local/state by default). If a setting changes, you are asked again. On a
terminal, plimsoll asks first. Without a terminal, with --yes or with --json it records at once. A nebula that git
ignores is found only if DIR is its folder.
--trust of other commands, or PLIMSOLL_TRUST=1 in the environment, trusts a project without a record, for example
in CI.`,
  examples: [
    { line: "plimsoll trust", meaning: "see the settings of this project and trust them" },
    { line: "plimsoll trust --list", meaning: "what is trusted on this machine" },
    { line: "plimsoll trust --revoke ~/code/shop", meaning: "stop trusting a project" },
    { line: "PLIMSOLL_TRUST=1 plimsoll inject --check", meaning: "in CI" },
  ],
  async run(call) {
    const { options, env } = call;
    if (options.list === true && options.revoke === true)
      throw usageError("--list and --revoke cannot be used together");
    if (options.list === true) {
      const projects = (await trustRecord.read(env)).map(({ path, settings, trustedAt }) => ({
        path,
        trustedAt,
        settings: settings.map(({ file, key, value }) => ({ file, key, value })),
      }));
      const lines = projects.flatMap(({ path, settings, trustedAt }) => [
        `${printable(path)}, trusted ${trustedAt}`,
        ...renderTable(
          settings.map(({ file, key, value }) => [file, key, value].map(printable)),
          ["left", "left", "left"],
        ).map((line) => `  ${line}`),
      ]);
      return { json: projects, text: lines.length === 0 ? "You trust no project." : lines.join("\n") };
    }
    const [named = "."] = call.arguments;
    const folder = resolve(call.cwd, named);
    // A missing folder can be revoked by its path. A typo must not revoke the project around it.
    if (options.revoke === true && !(await exists(folder))) return revoke(folder, call);
    await openDirectory(named, call.cwd);
    const root = projectRoot(folder, homeDirectory(env));
    return options.revoke === true ? revoke(root, call) : trust(folder, root, call);
  },
});

async function trust(folder: string, root: string, call: Call): Promise<CommandResult> {
  const { env, output } = call;
  const owner = await otherOwner(root, env);
  output.progress(`looking for the settings of ${printable(root)}`);
  const settings = await readProjectSettings(folder, { root, cwd: call.cwd, env });
  output.settle();
  const shown = settings.map(({ hash: _, ...setting }) => ({
    ...setting,
    file: shownPath(setting.file, call.cwd, env),
  }));
  if (settings.length === 0 && owner === undefined) {
    const text = "There is nothing to trust: the project has no settings that need trust.";
    return { json: { path: root, trusted: false, settings: shown }, text };
  }
  const lines = [
    ...(owner === undefined ? [] : [`${printable(root)} belongs to user ${owner}.`]),
    ...renderTable(
      shown.map(({ file, line, key, value, target }) =>
        [`${file}:${line}`, key, target === undefined ? value : `${value} → ${target}`].map(printable),
      ),
      ["left", "left", "left"],
    ),
  ];
  const stdin = call.stdin as NodeJS.ReadStream;
  // With --json the caller has decided already.
  if (call.options.yes !== true && !output.json && stdin.isTTY === true) {
    output.result(lines.splice(0).join("\n"));
    const { signal } = new AbortController();
    const ask = createQuestions({ stdin, output, signal, onAsking: () => {} });
    if (!(await ask(`Trust ${printable(root)} with this?`))) {
      output.problem("nothing was recorded");
      return { json: { path: root, trusted: false, settings: shown }, text: "", failed: true };
    }
  }
  const { path } = await trustRecord.trust({ root, env, settings, now: new Date() });
  const told = `Trusted ${printable(path)} with ${countNoun(settings.length, "setting")}.`;
  return { json: { path, trusted: true, settings: shown }, text: [...lines, told].join("\n") };
}

async function revoke(root: string, { env }: Call): Promise<CommandResult> {
  const revoked = await trustRecord.revoke({ root, env });
  const text = revoked ? `${printable(root)} is no longer trusted.` : `${printable(root)} was not trusted.`;
  return { json: { path: root, revoked }, text };
}
