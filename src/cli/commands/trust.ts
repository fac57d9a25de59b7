import { basename, dirname, join, resolve } from "node:path";
import { usageError } from "../../core/errors.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import {
  type Environment,
  exists,
  homeDirectory,
  isInside,
  listFiles,
  loadConfig,
  openDirectory,
  otherOwner,
  type PowerfulSetting,
  type ProjectPlace,
  projectRoot,
  renderTable,
  shownPath,
  trustRecord,
} from "../../host/index.ts";
import { nebulaSettings } from "../../plans/index.ts";
import { loadNebula } from "../../plans/nebula/index.ts";
import { readProjectFetches } from "../../rules/index.ts";
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
prices: company, prices, allow, guard and run in its configuration, addresses of sync:fetch in its packs, and in
nebulas the model and permissions of agents and a working directory outside of the project. They have no effect
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
    if (options.list === true) return listTrusted(env);
    const [named = "."] = call.arguments;
    const folder = resolve(call.cwd, named);
    // A missing folder can be revoked by its path. A typo must not revoke the project around it.
    if (options.revoke === true && !(await exists(folder))) return revoke(folder, call);
    await openDirectory(named, call.cwd);
    const root = projectRoot(folder, homeDirectory(env));
    return options.revoke === true ? revoke(root, call) : trust(root, call);
  },
});

async function trust(root: string, call: Call): Promise<CommandResult> {
  const { env, output } = call;
  const owner = await otherOwner(root, env);
  output.progress(`looking for the settings of ${printable(root)}`);
  const settings = await settingsOf(root, call);
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
  if (mustAsk(call)) {
    output.result(lines.splice(0).join("\n"));
    if (!(await ask(`Trust ${printable(root)} with this?`, call))) {
      output.problem("nothing was recorded");
      return { json: { path: root, trusted: false, settings: shown }, text: "", failed: true };
    }
  }
  const { path } = await trustRecord.trust({ root, env, settings, now: new Date() });
  const told = `Trusted ${printable(path)} with ${countNoun(settings.length, "setting")}.`;
  return { json: { path, trusted: true, settings: shown }, text: [...lines, told].join("\n") };
}

/** Returns all settings of the project that need trust, trusted or not. */
async function settingsOf(root: string, { arguments: [named = "."], cwd, env }: Call): Promise<PowerfulSetting[]> {
  const folder = resolve(cwd, named);
  const { powerful } = await loadConfig({ cwd: folder, env: { ...env, PLIMSOLL_TRUST: "1" } });
  const settings = [...powerful, ...(await readProjectFetches(root))];
  // A relative working directory starts where nebulas are run.
  const from = isInside(cwd, root) || (await isNebula(folder)) ? cwd : root;
  for (const directory of await nebulasOf({ root, env }, folder)) {
    const loaded = await loadNebula(directory);
    settings.push(...(await nebulaSettings(loaded, { cwd: from, env })));
  }
  return settings;
}

function isNebula(folder: string): Promise<boolean> {
  return exists(join(folder, "nebula.toml"));
}

/** Returns nebulas that git does not ignore, the named one, and those that are trusted already. */
async function nebulasOf(place: ProjectPlace, folder: string): Promise<Set<string>> {
  const { files } = await listFiles(place.root);
  const found = files.filter((file) => basename(file) === "nebula.toml").map((file) => dirname(file));
  const known = (await trustRecord.find(place))?.settings ?? [];
  for (const other of new Set([folder, ...known.map(({ file }) => dirname(join(place.root, file)))]))
    if (await isNebula(other)) found.push(other);
  return new Set(found);
}

/** Whether to ask. With --json the caller has decided already. */
function mustAsk({ options, stdin, output }: Call): boolean {
  return options.yes !== true && !output.json && (stdin as NodeJS.ReadStream).isTTY === true;
}

function ask(question: string, { stdin, output }: Call): Promise<boolean> {
  const { signal } = new AbortController();
  const terminal = stdin as NodeJS.ReadStream;
  return createQuestions({ stdin: terminal, output, signal, onAsking: () => {} }).ask(question);
}

async function revoke(root: string, { env }: Call): Promise<CommandResult> {
  const revoked = await trustRecord.revoke({ root, env });
  const text = revoked ? `${printable(root)} is no longer trusted.` : `${printable(root)} was not trusted.`;
  return { json: { path: root, revoked }, text };
}

async function listTrusted(env: Environment): Promise<CommandResult> {
  const projects = (await trustRecord.read(env)).map(({ path, settings, trustedAt }) => ({
    ...{ path, trustedAt, settings: settings.map(({ file, key, value }) => ({ file, key, value })) },
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
