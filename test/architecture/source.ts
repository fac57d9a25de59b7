/** What the rules need to know of a source file, read from its syntax tree: a comment or a string cannot deceive them. */
import { parseSync } from "vite";

export interface Source {
  readonly path: string;
  readonly text: string;
  /** Test code never ships: it may touch the world, but keeps to layers and doors like everything else. */
  readonly isTest: boolean;
  readonly imports: readonly Import[];
  readonly nodes: readonly Placed[];
  /** The comments above the first statement. */
  readonly header: string;
}

export interface Import {
  /** Undefined where it is computed, as in import(name). */
  readonly specifier: string | undefined;
  /** `type` leaves no trace in the built file; `lazy` is import(). */
  readonly kind: "static" | "lazy" | "type";
  readonly line: number;
}

/** A node with the one around it. */
export interface Placed {
  readonly node: Node;
  readonly parent: Node | undefined;
  /** Of the whole file. */
  readonly text: string;
}

export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

export function readSource(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text);
  if (errors[0] !== undefined) throw new SyntaxError(`${path}: ${errors[0].message}`);
  const nodes: Placed[] = [];
  collect(program as unknown as Node, undefined, { nodes, text });
  const first = program.body[0]?.start ?? text.length;
  return {
    path,
    text,
    isTest: /\.(test|contract)\.ts$/.test(path),
    imports: nodes.flatMap((placed) => importOf(placed) ?? []),
    nodes,
    header: comments
      .filter(({ end }) => end <= first)
      .map(({ value }) => value)
      .join("\n"),
  };
}

function collect(node: Node, parent: Node | undefined, walk: { nodes: Placed[]; text: string }): void {
  walk.nodes.push({ node, parent, text: walk.text });
  for (const key in node) {
    const value = node[key];
    if (Array.isArray(value)) {
      for (const child of value) if (isNode(child)) collect(child, node, walk);
    } else if (isNode(value)) collect(value, node, walk);
  }
}

/** Only an import and a violation ask for their line: finding it takes as long as the text is. */
export function lineOf({ node, text }: Placed): number {
  return text.slice(0, node.start).split("\n").length;
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function importOf(placed: Placed): Import | undefined {
  const { node } = placed;
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration": {
      if (!isNode(node.source)) return undefined;
      // A type marked inside the braces still leaves `import {} from …` behind, which loads the module.
      const kind = node.importKind === "type" || node.exportKind === "type" ? "type" : "static";
      return { specifier: literal(node.source), kind, line: lineOf(placed) };
    }
    case "ImportExpression":
      return { specifier: literal(node.source), kind: "lazy", line: lineOf(placed) };
    case "TSImportType":
      return { specifier: literal(node.source), kind: "type", line: lineOf(placed) };
    case "TSExternalModuleReference":
      return { specifier: literal(node.expression), kind: "static", line: lineOf(placed) };
    default:
      return undefined;
  }
}

function literal(node: unknown): string | undefined {
  return isNode(node) && node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}
