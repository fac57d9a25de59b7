/** Reduces the declarations in dist/ to what users can reach: the names that a door exports, and what those mention. The rest goes,
 *  and with it every type of a bundled package. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "rolldown/utils";

export function keepPublicTypes(root) {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const doors = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : join(root, types.default)));
  const modules = new Map(doors.map((door) => [door, readModule(door)]));
  const pending = [];
  const need = ({ file, name }) => {
    if (!modules.has(file)) modules.set(file, readModule(file));
    const module = modules.get(file);
    if (!module.needed.has(name)) pending.push({ module, name });
    module.needed.add(name);
  };
  for (const [file, { names }] of [...modules]) for (const name of names.keys()) need({ file, name });
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const reference of next.module.names.get(next.name) ?? []) need(reference);
  }
  for (const path of readdirSync(join(root, "dist"), { recursive: true }).filter((each) => each.endsWith(".d.ts"))) {
    const file = join(root, "dist", path);
    if (modules.has(file)) writeFileSync(file, writeModule(modules.get(file)));
    else rmSync(file);
  }
}

/** Reads which names a module has, and what each of them refers to. One name can be imported, exported and declared. */
function readModule(file) {
  const text = readFileSync(file, "utf8");
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const names = new Map();
  const add = (name, references) => names.set(name, [...(names.get(name) ?? []), ...references]);
  for (const node of program.body) {
    if (isList(node)) for (const each of node.specifiers) add(...readListed(each, { node, file }));
    else for (const name of declaredNames(node)) add(name, findReferences(node, file));
  }
  // A name that is not the module's own is one of the language.
  for (const [name, references] of names) {
    names.set(
      name,
      references.filter((each) => each.file !== file || names.has(each.name)),
    );
  }
  return { text, program, comments, names, needed: new Set() };
}

function readListed({ imported, exported, local }, { node, file }) {
  const source = node.source?.value;
  const name = (imported ?? local).name;
  if (source === undefined) return [exported.name, [{ file, name }]];
  return [(exported ?? local).name, source.startsWith(".") ? [{ file: declarationFile(file, source), name }] : []];
}

/** Whether a statement is only a list of imported or exported names. */
function isList(node) {
  return node.type === "ImportDeclaration" || (node.type === "ExportNamedDeclaration" && node.declaration === null);
}

function declaredNames(node) {
  const declaration = node.declaration ?? node;
  return declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id.name];
}

function declarationFile(file, source) {
  return join(dirname(file), source.replace(/\.[jt]s$/, ".d.ts"));
}

/** Takes every identifier for a reference. One too many only keeps a declaration too many. */
function findReferences(declaration, file) {
  const references = [];
  const visit = (node) => {
    if (node === null || typeof node !== "object") return;
    if (node.type === "Identifier") references.push({ file, name: node.name });
    if (node.type === "TSImportType" && node.source.value.startsWith(".")) {
      references.push({ file: declarationFile(file, node.source.value), name: node.qualifier?.name });
    }
    for (const child of Object.values(node)) visit(child);
  };
  visit(declaration);
  return references;
}

/** Needed declarations stay with their comments, imports and exports with their needed names. */
function writeModule({ text, program, comments, needed }) {
  const parts = program.body.flatMap((node) => {
    if (isList(node)) return keepNames(node, text, needed);
    if (!declaredNames(node).some((name) => needed.has(name))) return [];
    const comment = comments.findLast(({ end }) => end <= node.start && text.slice(end, node.start).trim() === "");
    return text.slice(comment?.start ?? node.start, node.end);
  });
  return `${parts.length === 0 ? "export {};" : parts.join("\n")}\n`;
}

function keepNames(node, text, needed) {
  const kept = node.specifiers.filter(({ exported, local }) => needed.has((exported ?? local).name));
  if (kept.length === 0) return [];
  const names = kept.map(({ start, end }) => text.slice(start, end)).join(", ");
  const kind = [node.importKind, node.exportKind].includes("type") ? " type" : "";
  const from = node.source === null ? "" : ` from "${node.source.value}"`;
  return `${node.type === "ImportDeclaration" ? "import" : "export"}${kind} { ${names} }${from};`;
}
