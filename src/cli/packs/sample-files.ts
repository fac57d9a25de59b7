/** What `init` writes. Comments teach in the YAML files, where no AI tool reads them; the sample's text is true as it stands. */

export interface SampleOptions {
  /** Ids of the AI tools to write for. */
  readonly tools: readonly string[];
  /** Folder of the schemas, relative to `.plimsoll/`. */
  readonly schemas: string;
}

/** Every key with its default, or commented out. */
export function sampleConfig({ tools, schemas }: SampleOptions): string {
  return `# yaml-language-server: $schema=${schemas}/config.schema.json
# Every key may be absent. What is commented out is the default; "plimsoll config" shows what is in force.
counter: auto                 # how tokens are counted; absent: each command's own way
tools: [${tools.join(", ")}]     # AI tools to write for; absent: those whose files are here
# title: Developer Context    # heading of what inject writes
# profile: all                # order of packs: all, minimal (base packs only), or one in profiles/
# language: en
# own_files: []               # tools that get a file of their own though they read AGENTS.md, such as [cursor]
# verbosity: {}               # tool → minimal | standard | full, such as { claude-code: standard }
# on_overflow: drop           # when a budget is exceeded: drop whole packs, or thin tiers first
# context: { max_tokens: 10000, shares: { project: 0.4, fabric: 0.4, prior_work: 0.2 } }
# session: { total: 100000, per_tool_call: 8000, history_max: 12000, warning_threshold: 20000, tools: {} }
# history: { policy: economic, threshold: 0.8, keep: 10, reserve: 16000 }
# deny: []                    # further files whose contents no tool shows, such as ["*.tfstate"]
# allow: []                   # files that usually hold secrets and may be shown; counts once you trust the project
# prices: {}

# Packs that several projects share: a directory, or a git URL at a revision ("plimsoll sync" fetches it). Everyone who works
# here trusts it once, with "plimsoll trust".
# company: { source: ../packs-repo, revision: main }
`;
}

export function samplePackFile({ schemas }: SampleOptions): string {
  return `# yaml-language-server: $schema=../../${schemas}/pack.schema.json
# A pack teaches one subject. Add more of them as folders beside this one; "plimsoll packs lint" checks them.
id: project                   # the folder's name
name: This project
description: What everyone who works here needs to know
weight: 90                    # heavier packs come first and are dropped last
# base: true                  # in every profile, before all others, dropped last
# overlaps: [other]           # this pack is redundant wherever the pack "other" is included before it
# changelog: ["Newest change first; three lines are shown"]
`;
}

/** Comments would go into the tools' files and cost tokens there, so what this teaches it teaches by being an example. */
export const sampleContext: string = `## This project

- Shared instructions for AI tools live in \`.plimsoll/packs/\`. Change the packs and run \`plimsoll inject\`; never edit the text between the \`plimsoll:start\` and \`plimsoll:end\` markers.

<!-- verbosity:detail -->
### Writing packs

- One rule a line, as you would tell a new colleague: what to do, then why if it is not obvious.
- Text above the first marker is \`core\` and reaches every tool, so it must make sense alone. \`detail\` goes to tools at \`standard\` and \`full\`.

<!-- verbosity:extended -->
### Checking packs

- \`plimsoll packs lint\` finds mistakes, \`plimsoll inject --dry-run --stats\` shows what each tool would get and what it weighs.
`;
