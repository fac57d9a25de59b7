/**
 * Reads a page of the documentation and lists what its code blocks ask for, in their order.
 *
 * | block | what happens |
 * |---|---|
 * | `console`, or the first line starts with `$ ` | each `$ command` runs; the lines after it are its output |
 * | `sh` | runs as one script and must succeed |
 * | `js`, `ts` | runs with Node; `plimsoll` is the built package |
 * | `text` or no language, directly after a block that runs | is the output of that block |
 * | `text`, `yaml`, `json`, … | is only shown |
 *
 * A comment directly before a block changes that:
 *
 * | comment | what happens |
 * |---|---|
 * | `<!-- file: PATH -->` | the block's text is written to PATH |
 * | `<!-- run: setup NAME -->` | `test/docs-run/setups/NAME.sh` runs first, in the page's own shell; it finds `$SESSIONS`, `$SETUPS`, `$PLIMSOLL_ROOT` |
 * | `<!-- continues -->` | a `js` or `ts` block goes on where the one before it ended |
 * | `<!-- output -->` | the block is the output of the last block that ran, although there is text between them |
 * | `<!-- types only: REASON -->` | a `js` or `ts` block is type-checked and does not run |
 * | `<!-- not run: REASON -->` | nothing: the block cannot run in a test |
 */

export type Step = {
  /** The line of the page, for messages. */
  readonly line: number;
  /** What the page shows as output, and the line where that starts. Undefined if it shows none. */
  expected?: string[];
  outputLine?: number;
} & (
  | { readonly kind: "setup"; readonly name: string }
  | { readonly kind: "file"; readonly path: string; readonly text: string }
  | { readonly kind: "command"; readonly text: string; expected: string[] }
  | { readonly kind: "script"; readonly text: string }
  | { readonly kind: "program"; readonly text: string; readonly typed: boolean; readonly runs: boolean }
);

export interface Page {
  readonly steps: readonly Step[];
  /** Mistakes in the comments and fences themselves, such as a block without a language. */
  readonly mistakes: readonly string[];
}

/** Takes the place of the text that a program continues; the output before it belongs to the block before. */
export const seam: string = "(the next block of the page)";

interface Block {
  readonly line: number;
  readonly language: string;
  readonly lines: readonly string[];
  /** Comments directly before the block, without their brackets. */
  readonly notes: readonly string[];
  /** Whether nothing but blank lines and comments is between this block and the one before it. */
  readonly follows: boolean;
}

const shells = ["sh", "bash", "shell", "console"];
const programs = ["js", "mjs", "javascript", "ts", "mts", "typescript"];

/** Lists the steps of a page. */
export function readPage(name: string, markdown: string): Page {
  const steps: Step[] = [];
  const mistakes: string[] = [];
  let ranBefore = false;
  for (const block of readBlocks(markdown)) {
    try {
      const added = stepsOf(block, steps, ranBefore);
      steps.push(...added);
      ranBefore = added.some(({ kind }) => kind !== "setup" && kind !== "file");
    } catch (error) {
      mistakes.push(`${name}:${block.line}: ${(error as Error).message}`);
      ranBefore = false;
    }
  }
  return { steps, mistakes };
}

function stepsOf(block: Block, before: readonly Step[], ranBefore: boolean): Step[] {
  const { line, language } = block;
  const text = `${block.lines.join("\n")}\n`;
  const notes = new Map(block.notes.map(readNote));
  const added: Step[] = [];
  const setup = notes.get("run");
  if (setup !== undefined) added.push({ kind: "setup", line, name: setup.replace(/^setup /, "") });
  const path = notes.get("file");
  if (path !== undefined) return [...added, { kind: "file", line, path, text }];
  if (notes.has("not run")) return added;
  if (block.lines[0]?.startsWith("$ ") === true || language === "console") {
    return [...added, ...commandsOf(block)];
  }
  if (shells.includes(language)) return [...added, { kind: "script", line, text }];
  if (programs.includes(language)) return [...added, programOf(block, { notes, before })];
  if (notes.has("output") || (ranBefore && block.follows && /^(text)?$/.test(language))) {
    giveOutput(before.at(-1), block);
    return added;
  }
  if (language === "") throw new Error("the block has no language. Write ```text if it is only shown.");
  return added;
}

function giveOutput(step: Step | undefined, { line, lines }: Block): void {
  if (step === undefined || (step.kind !== "script" && step.kind !== "program")) {
    throw new Error("the block is marked as output, but no block before it runs");
  }
  if (step.expected !== undefined) throw new Error("the block before this one already has its output");
  step.expected = [...lines];
  step.outputLine = line + 1;
}

function programOf(
  { line, language, lines }: Block,
  { notes, before }: { notes: ReadonlyMap<string, string>; before: readonly Step[] },
): Step {
  let text = `${lines.join("\n")}\n`;
  if (notes.has("continues")) {
    const earlier = before.findLast(({ kind }) => kind === "program");
    if (earlier?.kind !== "program") throw new Error("the block continues no program");
    text = `${earlier.text}console.log(${JSON.stringify(seam)});\n${text}`;
  }
  const typed = language.endsWith("ts") || language === "typescript";
  return { kind: "program", line, text, typed, runs: !notes.has("types only") };
}

/** A command line ends where its last line has no backslash at the end. */
function commandsOf({ line, lines }: Block): Step[] {
  const commands: Extract<Step, { kind: "command" }>[] = [];
  let isOpen = false;
  for (const [index, content] of lines.entries()) {
    const last = commands.at(-1);
    if (isOpen && last !== undefined) {
      const outputLine = line + 2 + index;
      commands[commands.length - 1] = { ...last, text: `${last.text}\n${content}`, outputLine };
    } else if (content.startsWith("$ ")) {
      const at = line + 1 + index;
      commands.push({ kind: "command", line: at, text: content.slice(2), expected: [], outputLine: at + 1 });
    } else if (last === undefined) {
      throw new Error("a console block starts with a command: `$ command`");
    } else {
      last.expected.push(content);
    }
    isOpen = content.endsWith("\\") && (isOpen || content.startsWith("$ "));
  }
  return commands;
}

const noteNames = ["file", "run", "continues", "output", "types only", "not run"];
const bareNotes = ["continues", "output"];

function readNote(note: string): [string, string] {
  const [, name = "", value = ""] = /^([a-z ]+?)\s*(?::\s*(.*))?$/s.exec(note) ?? [];
  if (noteNames.includes(name) && value === "" && !bareNotes.includes(name)) {
    throw new Error(`"${name}" needs words after a colon`);
  }
  if (name === "run" && !/^setup [\w-]+$/.test(value)) throw new Error('write "run: setup NAME"');
  return [name, value];
}

function* readBlocks(markdown: string): Generator<Block> {
  let open: { fence: string; indent: number; block: Block & { lines: string[] } } | undefined;
  let notes: string[] = [];
  let follows = false;
  for (const [index, line] of markdown.split(/\r?\n/).entries()) {
    if (open !== undefined) {
      if (new RegExp(`^ *${open.fence}+ *$`).test(line)) {
        yield open.block;
        [open, notes, follows] = [undefined, [], true];
      } else {
        open.block.lines.push(line.slice(Math.min(open.indent, line.search(/\S|$/))));
      }
      continue;
    }
    const [, indent = "", fence, language = ""] = /^( *)(`{3,}|~{3,})([\w-]*)/.exec(line) ?? [];
    const note = /^ *<!--\s*(.*?)\s*-->\s*$/.exec(line)?.[1];
    if (fence !== undefined) {
      const block = { line: index + 1, language: language.toLowerCase(), lines: [], notes, follows };
      open = { fence, indent: indent.length, block };
    } else if (note !== undefined) {
      notes.push(note);
    } else if (line.trim() !== "") {
      [notes, follows] = [[], false];
    }
  }
  if (open !== undefined) yield open.block;
}
