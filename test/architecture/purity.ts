/** In pure folders nothing reads a file, the clock, the environment, the network or chance: callers pass these in. */
import { isPure } from "./layers.ts";
import { isNode, lineOf, type Placed, type Source } from "./source.ts";
import type { Violation } from "./violation.ts";

/** The store drivers do I/O behind doors of their own. */
export function isDriver(path: string): boolean {
  return /^src\/host\/store\/(sqlite|postgres)[\w-]*\.ts$/.test(path);
}

/** They ask which runtime this is, to compute the same faster. */
const computesNatively: ReadonlySet<string> = new Set(["src/core/bytes.ts", "src/core/crypto.ts"]);

/** Workers and browsers have no Buffer. */
const bufferRule = "is missing in Workers and browsers. Import it from src/core/bytes.ts.";

function checkBuffer({ path, nodes, imports }: Source): Violation[] {
  if (imports.some(({ specifier }) => specifier?.endsWith("/bytes.ts"))) return [];
  const uses = nodes.filter(({ node, parent }) => {
    return (
      node.type === "Identifier" &&
      node.name === "Buffer" &&
      parent?.type === "MemberExpression" &&
      parent.object === node
    );
  });
  return uses.map((placed) => ({ file: path, line: lineOf(placed), subject: "Buffer", rule: bufferRule }));
}

export function checkPurity(source: Source): Violation[] {
  if (source.isTest || !isPure(source.path) || computesNatively.has(source.path)) return [];
  const impure = source.nodes.flatMap((placed) => {
    const subject = impureUse(placed);
    return subject === undefined ? [] : { file: source.path, line: lineOf(placed), subject, rule };
  });
  return [...impure, ...checkBuffer(source)];
}

const rule = "is not pure, and this file is. Let the caller pass it in.";

/** Not even as names of our own: telling a local `fetch` from the global one is more than a reader should have to do. */
const impureNames = new Set(
  `process global globalThis require console fetch WebSocket EventSource navigator performance crypto
   setTimeout setInterval setImmediate localStorage Worker`.split(/\s+/),
);

/** These read the locale of the machine. */
const localeMethods = /^(localeCompare|toLocale\w+)$/;

function impureUse(placed: Placed): string | undefined {
  const { node } = placed;
  if (node.type === "MetaProperty") return "import.meta";
  const property = node.type === "MemberExpression" ? propertyName(node) : undefined;
  if (property !== undefined && localeMethods.test(property)) return property;
  if (node.type !== "Identifier" || isMereLabel(placed)) return undefined;
  const name = String(node.name);
  if (impureNames.has(name)) return name;
  if (name === "Math") return impureMath(placed);
  if (name === "Date") return impureDate(placed);
  return undefined;
}

/** The name of a property, or a name on the other side of an import or export: it refers to nothing in scope. */
function isMereLabel({ node, parent }: Placed): boolean {
  if (parent === undefined || parent.computed === true) return false;
  return (
    parent.key === node ||
    parent.imported === node ||
    parent.type === "ExportSpecifier" ||
    (parent.type === "MemberExpression" && parent.property === node) ||
    (parent.type === "TSQualifiedName" && parent.right === node)
  );
}

function impureMath({ parent }: Placed): string | undefined {
  const property = parent?.type === "MemberExpression" ? propertyName(parent) : undefined;
  if (property === undefined) return "Math";
  return property === "random" ? "Math.random" : undefined;
}

/** A given moment is a value; only the present one comes from the clock. */
function impureDate({ node, parent }: Placed): string | undefined {
  if (parent?.type === "MemberExpression") {
    const property = propertyName(parent) ?? "[…]";
    return ["parse", "UTC", "prototype"].includes(property) ? undefined : `Date.${property}`;
  }
  if (parent?.type === "NewExpression" && parent.callee === node) {
    return Array.isArray(parent.arguments) && parent.arguments.length > 0 ? undefined : "new Date()";
  }
  return parent?.type === "TSTypeReference" || parent?.type === "BinaryExpression" ? undefined : "Date";
}

function propertyName(member: Placed["node"]): string | undefined {
  const { property, computed } = member;
  if (!isNode(property)) return undefined;
  if (computed !== true) return String(property.name);
  return property.type === "Literal" ? String(property.value) : undefined;
}
