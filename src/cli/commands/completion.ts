import { type Command, defineCommand } from "../command.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

export const completionCommand: Command = defineCommand({
  arguments: [{ name: "SHELL", choices: shells, summary: shells.join(", ") }],
  options: {},
  details: "The script knows the commands, options and values of this version: load it anew after an update.",
  examples: [
    { line: 'eval "$(plimsoll completion bash)"', meaning: "in ~/.bashrc" },
    { line: 'eval "$(plimsoll completion zsh)"', meaning: "in ~/.zshrc, after compinit" },
    { line: "plimsoll completion fish | source", meaning: "in ~/.config/fish/config.fish" },
  ],
  async run({ arguments: [shell], commands }) {
    const { describeCommands } = await import("../completion/describe-commands.ts");
    const script = (await renderers[shell as Shell]())(await describeCommands(commands));
    return { json: { shell, script }, text: script };
  },
});

const renderers = {
  bash: async () => (await import("../completion/bash.ts")).renderBash,
  zsh: async () => (await import("../completion/zsh.ts")).renderZsh,
  fish: async () => (await import("../completion/fish.ts")).renderFish,
} as const;
