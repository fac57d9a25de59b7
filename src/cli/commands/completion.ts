import { type Command, type CommandEntry, defineCommand, type OptionSpecs } from "../command.ts";
import { groupOptions, listFlags, withGlobalOptions } from "../parse-arguments.ts";

const shells = ["bash", "zsh", "fish"] as const;

export const completionCommand: Command = defineCommand({
  arguments: [{ name: "SHELL", choices: shells, summary: shells.join(", ") }],
  options: {},
  details: "The script contains the commands, options and values of this version. Load it again after an update.",
  examples: [
    { line: 'eval "$(plimsoll completion bash)"', meaning: "in ~/.bashrc" },
    { line: 'eval "$(plimsoll completion zsh)"', meaning: "in ~/.zshrc, after compinit" },
    { line: "plimsoll completion fish | source", meaning: "in ~/.config/fish/config.fish" },
  ],
  async run({ arguments: [shell], commands }) {
    const render = { bash: renderBash, zsh: renderZsh, fish: renderFish }[shell as (typeof shells)[number]];
    const script = render(await describeCommands(commands));
    return { json: { shell, script }, text: script };
  },
});

/** One function per command. Works evaluated, and as a file `_plimsoll` in the fpath. */
function renderZsh(nodes: readonly CompletionNode[]): string {
  const functions = nodes.flatMap((node) => [
    // Values have their own functions, because inside an _arguments line every ":" would need escaping.
    ...node.options.flatMap(({ name, choices, list }) => {
      if (choices.length === 0) return [];
      const add = `compadd - ${choices.map(zshQuoted).join(" ")}`;
      return [`${functionName([...node.path, "value", name])}() { ${list ? `_sequence ${add}` : add} }`];
    }),
    nodeFunction(node),
  ]);
  return `#compdef plimsoll
# zsh completion for plimsoll
${functions.join("\n")}
if [[ "$funcstack[1]" == _plimsoll ]]; then
  _plimsoll "$@"
else
  compdef _plimsoll plimsoll
fi
`;
}

function functionName(path: readonly string[]): string {
  return ["_plimsoll", ...path].join("_").replaceAll("-", "_");
}

function nodeFunction(node: CompletionNode): string {
  const specs = [...node.options.map((option) => optionSpec(node, option)), ...argumentSpecs(node)];
  return `${functionName(node.path)}() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C -s ${specs.map((spec) => `\\\n    ${spec}`).join(" ")}
${node.children.length === 0 ? "" : childCases(node)}}`;
}

function optionSpec(
  { path }: CompletionNode,
  { name, short, flags, summary, value, list, choices }: CompletionOption,
): string {
  const explanation = `[${summary.replace(/[[\]:\\]/g, "\\$&")}]`;
  const complete = choices.length === 0 ? "" : functionName([...path, "value", name]);
  const tail = zshQuoted(
    `${value === undefined ? "" : "="}${explanation}${value === undefined ? "" : `:${name}:${complete || " "}`}`,
  );
  const others = list ? zshQuoted("*") : zshQuoted(`(${flags.join(" ")})`);
  return short === undefined ? `${others}--${name}${tail}` : `${others}{-${short},--${name}}${tail}`;
}

function argumentSpecs({ path, children, choices, takesFiles }: CompletionNode): string[] {
  if (children.length > 0) return [zshQuoted("1:command:->command"), zshQuoted("*::argument:->argument")];
  if (choices.length > 0) return [zshQuoted(`1:${path.at(-1)}:(${choices.join(" ")})`)];
  return takesFiles ? [zshQuoted("*:file:_files")] : [];
}

function childCases({ path, children }: CompletionNode): string {
  const lines = children.map(({ name, summary }) => zshQuoted(`${name}:${summary.replaceAll(":", "\\:")}`));
  const names = children.map(({ name }) => name).filter((name) => name !== "help");
  return `  case $state in
    command)
      local -a commands=(${lines.map((line) => `\n        ${line}`).join("")}
      )
      _describe -t commands command commands ;;
    argument)
      case $words[1] in
${names.map((name) => `        ${name}) ${functionName([...path, name])} ;;`).join("\n")}
        help) ${functionName(path)} ;;
      esac ;;
  esac
`;
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function renderFish(nodes: readonly CompletionNode[]): string {
  const places = nodes.slice(1).map(({ path }) => fishQuoted(path.join(" ")));
  return `# fish completion for plimsoll
function __plimsoll_at --description 'Whether the command line so far names exactly this command'
    set -l place
    for word in (commandline -opc)[2..-1]
        contains -- "$place $word" ${places.map((place) => `' '${place}`).join(" ")}
        and set place "$place $word"
    end
    test "$place" = "$argv[1]"
end
function __plimsoll_list --description 'Values of a list, after what is already there'
    set -l before (commandline -ct | string replace -r '^--[^=]*=' '' | string replace -r '[^,]*$' '')
    printf '%s\\n' "$before"$argv
end
complete -c plimsoll -f
${nodes.flatMap(nodeLines).join("\n")}
`;
}

function nodeLines(node: CompletionNode): string[] {
  const at = `complete -c plimsoll -n ${fishQuoted(`__plimsoll_at "${node.path.map((name) => ` ${name}`).join("")}"`)}`;
  return [
    ...node.children.map(({ name, summary }) => `${at} -a ${name} -d ${fishQuoted(summary)}`),
    ...(node.choices.length > 0 ? [`${at} -a ${fishQuoted(node.choices.join(" "))}`] : []),
    ...(node.takesFiles ? [`${at} -F`] : []),
    ...node.options.map((option) => `${at} ${optionPart(option)} -d ${fishQuoted(option.summary)}`),
  ];
}

function optionPart({ name, short, value, list, choices }: CompletionOption): string {
  const flags = `${short === undefined ? "" : `-s ${short} `}-l ${name}`;
  if (value === undefined) return flags;
  if (choices.length === 0) return `${flags} -x`;
  return `${flags} -x -a ${fishQuoted(list ? `(__plimsoll_list ${choices.join(" ")})` : choices.join(" "))}`;
}

function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

/** Works from bash 3.2, which macOS still ships: no associative arrays, no compopt. */
function renderBash(nodes: readonly CompletionNode[]): string {
  return `# bash completion for plimsoll
_plimsoll() {
  local line cur prev word place="" before="" value values="" cut
  local -a words
  # From the line itself: bash cuts words at ":" and "=", and names of counters have a ":".
  line="\${COMP_LINE:0:COMP_POINT}"
  cur="\${line##*[[:space:]]}"
  read -ra words <<< "\${line%"$cur"}"
  prev="\${words[\${#words[@]} - 1]}"
  for word in "\${words[@]:1}"; do
    case "$place/$word" in
      ${nodes.slice(1).map(renderPath).join(" | ")}) place="$place/$word" ;;
    esac
  done
  value="$cur"
  if [[ "$cur" == --*=* ]]; then
    prev="\${cur%%=*}" before="\${cur%%=*}=" value="\${cur#*=}"
  fi
  case "$place $prev" in
${nodes.flatMap((node) => node.options.filter(({ value }) => value !== undefined).map((option) => valueCase(node, option))).join("\n")}
    *)
      case "$place \${cur:0:1}" in
${nodes
  .map((node) =>
    wordCase(
      `"${renderPath(node)} -"`,
      node.options.flatMap(({ flags }) => flags),
    ),
  )
  .join("\n")}
${nodes.map((node) => wordCase(`"${renderPath(node)} "*`, [...node.children.map(({ name }) => name), ...node.choices])).join("\n")}
      esac ;;
  esac
  COMPREPLY=( $(compgen -P "$before" -W "$values" -- "$value") )
  # Bash replaces only what stands after its last cut.
  [[ "$COMP_WORDBREAKS" == *:* ]] && cut="\${cur%"\${cur##*[=:]}"}" || cut="\${cur%"\${cur##*=}"}"
  COMPREPLY=( "\${COMPREPLY[@]#"$cut"}" )
}
complete -o bashdefault -o default -F _plimsoll plimsoll
`;
}

function renderPath({ path }: CompletionNode): string {
  return path.map((name) => `/${name}`).join("");
}

/** Completes only the part of a list after the last comma. */
function valueCase(node: CompletionNode, { flags, choices, list }: CompletionOption): string {
  const patterns = flags.map((flag) => `"${renderPath(node)} ${flag}"`).join(" | ");
  const split = list ? `; [[ "$value" == *,* ]] && before="$before\${value%,*}," value="\${value##*,}" ;;` : " ;;";
  return `    ${patterns}) values="${choices.join(" ")}"${split}`;
}

function wordCase(pattern: string, words: readonly string[]): string {
  return `        ${pattern}) values="${words.join(" ")}" ;;`;
}

/** What a shell needs to know about one command. The program itself has an empty path. */
interface CompletionNode {
  readonly path: readonly string[];
  readonly children: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletionOption[];
  /** Fixed values of the arguments. */
  readonly choices: readonly string[];
  readonly takesFiles: boolean;
}

interface CompletionOption {
  /** Long name without dashes. */
  readonly name: string;
  readonly short: string | undefined;
  readonly flags: readonly string[];
  readonly summary: string;
  readonly value: string | undefined;
  readonly list: boolean;
  readonly choices: readonly string[];
}

/** Returns the whole table as a flat list, parents first. Loads every command. */
export async function describeCommands(table: readonly CommandEntry[]): Promise<CompletionNode[]> {
  const help = { name: "help", summary: "show the help of a command" };
  const root: CompletionNode = {
    path: [],
    children: [...table, help],
    options: describeOptions(groupOptions([])),
    choices: [],
    takesFiles: false,
  };
  return [root, ...(await describeEntries(table, []))];
}

async function describeEntries(entries: readonly CommandEntry[], parent: readonly string[]): Promise<CompletionNode[]> {
  const nodes: CompletionNode[] = [];
  for (const entry of entries) {
    const path = [...parent, entry.name];
    const found = await entry.load();
    if ("subcommands" in found) {
      nodes.push({
        path,
        children: found.subcommands,
        options: describeOptions(groupOptions(path)),
        choices: [],
        takesFiles: false,
      });
      nodes.push(...(await describeEntries(found.subcommands, path)));
      continue;
    }
    const specs = found.arguments ?? [];
    nodes.push({
      path,
      children: [],
      options: describeOptions(withGlobalOptions(found)),
      choices: specs.flatMap(({ choices = [] }) => choices),
      takesFiles: specs.some(({ choices }) => choices === undefined),
    });
  }
  return nodes;
}

function describeOptions(options: OptionSpecs): CompletionOption[] {
  return Object.entries(options).map(([name, spec]) => {
    const { short, summary, value, list = false, choices = [] } = spec;
    return { name, short, flags: listFlags(name, spec), summary, value, list, choices };
  });
}
