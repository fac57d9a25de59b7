/** Rules on the form of a file: how it exports, what it is called, how long it is. */
import { isNode, lineOf, type Placed, type Source } from "./source.ts";
import type { Violation } from "./violation.ts";

export const lookAgainLines = 400;
const mostLines = 500;

export function checkForm(source: Source): Violation[] {
  return [...checkExports(source), ...checkName(source), ...checkLength(source)];
}

function checkExports({ path, nodes }: Source): Violation[] {
  return nodes.flatMap((placed) => {
    if (placed.node.type === "ExportAllDeclaration") {
      return {
        file: path,
        line: lineOf(placed),
        subject: "export *",
        rule: "hides what a file gives. List the names.",
      };
    }
    return isDefaultExport(placed)
      ? { file: path, line: lineOf(placed), subject: "default export", rule: "has no name. Export it by name." }
      : [];
  });
}

function isDefaultExport({ node }: Placed): boolean {
  if (node.type === "ExportDefaultDeclaration" || node.type === "TSExportAssignment") return true;
  if (node.type !== "ExportSpecifier" || !isNode(node.exported)) return false;
  return node.exported.name === "default" || node.exported.value === "default";
}

function checkName({ path }: Source): Violation[] {
  const name = path.split("/").find((part) => /^(utils?|helpers?|types?|common|misc)(\.[.\w]+)?$/.test(part));
  if (name === undefined) return [];
  return [{ file: path, line: 1, subject: name, rule: "says nothing. Name it after what it gives." }];
}

function checkLength({ path, text, header }: Source): Violation[] {
  const lines = lineCount(text);
  if (lines <= mostLines || /\blong because\b/i.test(header)) return [];
  const rule = `is too long: at most ${mostLines} unless a comment at the top says "Long because …".`;
  return [{ file: path, line: mostLines + 1, subject: `${lines} lines`, rule }];
}

export function lineCount(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}
