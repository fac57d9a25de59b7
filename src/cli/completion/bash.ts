import type { CompletionNode, CompletionOption } from "./describe-commands.ts";

/** Works from bash 3.2, which macOS still ships: no associative arrays, no compopt. */
export function renderBash(nodes: readonly CompletionNode[]): string {
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
      ${nodes.slice(1).map(placeOf).join(" | ")}) place="$place/$word" ;;
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
      `"${placeOf(node)} -"`,
      node.options.flatMap(({ flags }) => flags),
    ),
  )
  .join("\n")}
${nodes.map((node) => wordCase(`"${placeOf(node)} "*`, wordsOf(node))).join("\n")}
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

function placeOf({ path }: CompletionNode): string {
  return path.map((name) => `/${name}`).join("");
}

function wordsOf({ children, choices }: CompletionNode): string[] {
  return [...children.map(({ name }) => name), ...choices];
}

/** Of a list only the part after the last comma is completed. */
function valueCase(node: CompletionNode, { flags, choices, list }: CompletionOption): string {
  const patterns = flags.map((flag) => `"${placeOf(node)} ${flag}"`).join(" | ");
  const split = list
    ? `; [[ "$value" == *,* ]] && before="$before\${value%,*}," value="\${value##*,}" ;;`
    : " ;;";
  return `    ${patterns}) values="${choices.join(" ")}"${split}`;
}

function wordCase(pattern: string, words: readonly string[]): string {
  return `        ${pattern}) values="${words.join(" ")}" ;;`;
}
