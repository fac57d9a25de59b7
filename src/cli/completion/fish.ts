import type { CompletionNode, CompletionOption } from "./describe-commands.ts";

export function renderFish(nodes: readonly CompletionNode[]): string {
  const places = nodes.slice(1).map(({ path }) => quoted(path.join(" ")));
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
  const at = `complete -c plimsoll -n ${quoted(`__plimsoll_at "${node.path.map((name) => ` ${name}`).join("")}"`)}`;
  return [
    ...node.children.map(({ name, summary }) => `${at} -a ${name} -d ${quoted(summary)}`),
    ...(node.choices.length > 0 ? [`${at} -a ${quoted(node.choices.join(" "))}`] : []),
    ...(node.takesFiles ? [`${at} -F`] : []),
    ...node.options.map((option) => `${at} ${optionPart(option)} -d ${quoted(option.summary)}`),
  ];
}

function optionPart({ name, short, value, list, choices }: CompletionOption): string {
  const flags = `${short === undefined ? "" : `-s ${short} `}-l ${name}`;
  if (value === undefined) return flags;
  if (choices.length === 0) return `${flags} -x`;
  return `${flags} -x -a ${quoted(list ? `(__plimsoll_list ${choices.join(" ")})` : choices.join(" "))}`;
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
