/** Checks that real clients find the commands, agents and skills that `inject` writes: each has a word of its own, and the client's
 *  first request, or its own listing, shows the word. Afterwards `--uninstall` restores every byte. Part of
 *  `npm run accept:load`. */
import { spawn } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { startProvider } from "../provider/provider.mjs";
import { modelOf, prepareClient } from "./clients.mjs";
import { firstRequest, writeProject } from "./load-canaries.mjs";

const words = {
  command: "word-of-the-command",
  body: "word-of-its-text",
  agent: "word-of-the-agent",
  skill: "word-of-the-skill",
};
const description = (word) => `---\ndescription: Says ${word}.\n---\n`;
const files = {
  ".plimsoll/packs/own/pack.yaml": "id: own\nname: Own rules\nweight: 50\n",
  ".plimsoll/packs/own/context.md": "Be brief.\n",
  ".plimsoll/packs/own/commands/say-it.md": `${description(words.command)}${words.body} $ARGUMENTS.\n`,
  ".plimsoll/packs/own/agents/word-finder.md": `---\ndescription: Says ${words.agent}.\ntools: [read, search]\n---\nYou only read.\n`,
  ".plimsoll/packs/own/skills/spell/SKILL.md": `---\nname: spell\ndescription: Says ${words.skill}.\n---\nSpell.\n`,
};

/** The clients that have commands and agents. `opencode` offers commands to people only. */
const ids = { claude: "claude-code", copilot: "copilot-cli", opencode: "opencode" };
const starts = {
  claude: ["-p", "/say-it twice", "--model", modelOf("claude")],
  opencode: ["run", "-m", modelOf("opencode"), "--command", "say-it", "twice"],
};

export async function acceptPrompts(name, { clients, check, runPlimsoll, readTree }) {
  if (ids[name] === undefined) return;
  const project = await writeProject({
    ...files,
    ".plimsoll/config.yaml": `tools: [${ids[name]}]\npacks: { built_in: [] }\n`,
  });
  try {
    const bytes = readTree(project.root);
    const injected = await runPlimsoll(["inject"], project);
    const checked = await runPlimsoll(["inject", "--check"], project);
    check(injected.code === 0 && checked.code === 0, `${name}: commands, an agent and a skill are written`, injected);
    // opencode writes a package.json of its own into .opencode, so clients run in a copy.
    const folder = join(project.base, "copy");
    cpSync(project.root, folder, { recursive: true });
    const { text = "", failure } = await firstRequest(name, { clients, home: `${project.home}-first`, folder });
    if (failure !== undefined) check(false, failure);
    const counts = Object.fromEntries(Object.entries(words).map(([kind, word]) => [kind, text.split(word).length - 1]));
    check(counts.agent === 1, `${name}: the first request lists the agent once`, counts);
    check(counts.skill === 1, `${name}: the first request lists the skill once`, counts);
    if (name !== "opencode") check(counts.command === 1, `${name}: the first request lists the command once`, counts);
    if (starts[name] !== undefined) {
      const sent = await startCommand(name, { clients, home: `${project.home}-start`, folder });
      check(
        sent.includes(`${words.body} twice.`),
        `${name}: /say-it sends the text of the command`,
        sent.slice(0, 2_000),
      );
    }
    const removed = await runPlimsoll(["inject", "--uninstall"], project);
    check(removed.code === 0 && readTree(project.root) === bytes, `${name}: --uninstall restores every byte`, removed);
  } finally {
    project.remove();
  }
}

/** Returns all requests of a run that starts the command. */
async function startCommand(name, { clients, home, folder }) {
  const model = await startProvider({ title: "A task", checks: false, answer: () => ({ text: "All done." }) });
  try {
    const env = prepareClient(clients, name, { home, url: model.url });
    const child = spawn(join(home, "bin", name), starts[name], { cwd: folder, env, stdio: "ignore" });
    const timer = setTimeout(() => child.kill("SIGKILL"), 120_000);
    await new Promise((done) => child.on("exit", done));
    clearTimeout(timer);
    return model.calls.map(({ body }) => JSON.stringify(body)).join("\n");
  } finally {
    await model.close();
  }
}
