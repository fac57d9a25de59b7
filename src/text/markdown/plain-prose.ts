/** Markdown for a reader that shows it as it is: the marks go, the words stay. Code, tables and links are left alone. */
import { scanLines } from "./fences.ts";
import { stripInline } from "./strip-inline.ts";

/** Strips fences (not the code in them), headings' marks, emphasis, inline code's ticks and comments; at most one empty line in a row. */
export function toPlainProse(markdown: string): string {
  const writer = createProseWriter();
  scanLines(markdown, (line, kind) => {
    const text = markdown.slice(line.start, line.next);
    if (kind === "text") writer.addText(text);
    else if (kind === "comment") writer.addComment(text);
    else writer.addCode(kind === "code" ? text : "");
  });
  return writer.finish();
}

interface ProseWriter {
  addText(line: string): void;
  addComment(line: string): void;
  addCode(line: string): void;
  finish(): string;
}

/** Collects the lines of one paragraph, since emphasis may span them, and ends it where Markdown does. */
function createProseWriter(): ProseWriter {
  const output: string[] = [];
  let paragraph = "";
  let afterEmpty = false;
  let inItem = false;

  const write = (text: string): void => {
    if (text === "") return;
    const empty = text === "\n" || text === "\r\n";
    if (!(empty && afterEmpty)) output.push(text);
    afterEmpty = empty;
  };
  const endParagraph = (): void => {
    const stripped = stripInline(paragraph);
    // Only what was stripped can have left an empty line.
    if (stripped === paragraph) write(paragraph);
    else for (const line of stripped.split(/(?<=\n)/)) write(line);
    paragraph = "";
  };
  const writeAlone = (text: string): void => {
    endParagraph();
    write(text);
  };
  return {
    addText(line) {
      const isIndentedCode = /^(?: {4}|\t)\s*\S/.test(line) && paragraph === "" && !inItem;
      if (/^\s*$/.test(line) || isIndentedCode) return writeAlone(line);
      if (/^\s*\|/.test(line)) return writeAlone(withoutComments(line));
      const heading = headingIn(line);
      if (heading !== undefined) {
        inItem = false;
        return writeAlone(stripInline(heading));
      }
      const startsItem = /^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(line);
      if (startsItem || /^\s*>/.test(line)) endParagraph();
      inItem = startsItem || (inItem && /^\s/.test(line)) || (inItem && paragraph !== "");
      paragraph += line;
    },
    addComment(line) {
      endParagraph();
      const end = line.indexOf("-->");
      if (end !== -1) write(stripInline(line.slice(end + 3)));
    },
    addCode(line) {
      endParagraph();
      if (line === "") return;
      output.push(line);
      afterEmpty = false;
    },
    finish() {
      endParagraph();
      return output.join("");
    },
  };
}

/** `## Title ##` → `Title`. */
function headingIn(line: string): string | undefined {
  const match = /^ {0,3}#{1,6}(?:[ \t]+(.*?))?(\r?\n)?$/s.exec(line);
  if (match === null) return undefined;
  const [, title = "", lineEnd = ""] = match;
  return `${title.replace(/(?:^|[ \t]+)#+[ \t]*$/, "").trimEnd()}${lineEnd}`;
}

function withoutComments(line: string): string {
  const [first = "", ...rest] = line.split("<!--");
  return (
    first +
    rest.map((part) => (part.includes("-->") ? part.slice(part.indexOf("-->") + 3) : `<!--${part}`)).join("")
  );
}
