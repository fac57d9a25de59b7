import type { CompletionNode, CompletionOption } from "./describe-commands.ts";

/** One function a command. Works both evaluated and as a file `_plimsoll` in the fpath. */
export function renderZsh(nodes: readonly CompletionNode[]): string {
  const functions = nodes.flatMap((node) => [
    ...node.options.flatMap((option) => valueFunction(node, option)),
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

/** Values stand in functions of their own: inside an _arguments line every ":" in them would need escaping. */
function valueFunction({ path }: CompletionNode, { name, choices, list }: CompletionOption): string[] {
  if (choices.length === 0) return [];
  const add = `compadd - ${choices.map(quoted).join(" ")}`;
  return [`${functionName([...path, "value", name])}() { ${list ? `_sequence ${add}` : add} }`];
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
  const tail = quoted(
    `${value === undefined ? "" : "="}${explanation}${value === undefined ? "" : `:${name}:${complete || " "}`}`,
  );
  const others = list ? quoted("*") : quoted(`(${flags.join(" ")})`);
  return short === undefined ? `${others}--${name}${tail}` : `${others}{-${short},--${name}}${tail}`;
}

function argumentSpecs({ path, children, choices, takesFiles }: CompletionNode): string[] {
  if (children.length > 0) return [quoted("1:command:->command"), quoted("*::argument:->argument")];
  if (choices.length > 0) return [quoted(`1:${path.at(-1)}:(${choices.join(" ")})`)];
  return takesFiles ? [quoted("*:file:_files")] : [];
}

function childCases({ path, children }: CompletionNode): string {
  const lines = children.map(({ name, summary }) => quoted(`${name}:${summary.replaceAll(":", "\\:")}`));
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

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
