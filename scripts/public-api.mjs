/** Reads what the package exports: each name of src/public/ with its declaration and its doc comment. The pages in docs/api/ and the
 *  tests of the public names are made from it. */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The import paths of the package with the names that each exports, in the order of package.json. */
export function readPublicApi() {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports)
    .filter(([, { default: path }]) => path !== undefined)
    .map(([door, { default: path }]) => {
      const file = path.replace("./dist/", "src/").replace(/\.js$/, ".ts");
      const { comments } = readSource(file);
      return {
        path: posix.join(name, door),
        file,
        summary: readComment(comments[0]?.value ?? ""),
        names: exportedNames(file),
      };
    });
}

/** Every file of src/public/, so that none is left out of package.json. */
export function listPublicFiles() {
  const names = readdirSync(join(root, "src/public")).filter((name) => name.endsWith(".ts"));
  return names.map((name) => `src/public/${name}`);
}

function exportedNames(file) {
  return reexports(file).map(({ exported, local, from }) => ({ name: exported, ...findDeclaration(from, local) }));
}

function reexports(file) {
  const { program } = readSource(file);
  return program.body
    .filter((node) => node.type === "ExportNamedDeclaration" && node.source !== null)
    .flatMap((node) =>
      node.specifiers.map(({ local, exported }) => ({
        local: local.name,
        exported: exported.name,
        from: posix.join(posix.dirname(file), node.source.value),
      })),
    );
}

/** Follows re-exports to the file that declares a name. */
function findDeclaration(file, name) {
  const { program, text, comments } = readSource(file);
  for (const node of program.body) {
    const declaration = node.type === "ExportNamedDeclaration" ? node.declaration : undefined;
    if (declaration == null || !declaredNames(declaration).includes(name)) continue;
    const comment = comments.findLast(
      ({ type, value, end }) =>
        type === "Block" && value.startsWith("*") && end <= node.start && text.slice(end, node.start).trim() === "",
    );
    return {
      file,
      kind: kinds[declaration.type],
      signature: signatureOf(declaration, text),
      doc: readComment(comment?.value ?? ""),
      members: declaration.type === "TSInterfaceDeclaration" ? membersOf(declaration, { text, comments }) : [],
    };
  }
  const next = reexports(file).find(({ exported }) => exported === name) ?? importedAs(file, name);
  if (next === undefined) throw new Error(`${file} does not declare ${name}`);
  return findDeclaration(next.from, next.local);
}

/** `import { x } from "./y.ts"; export { x }`, with or without `type`. */
function importedAs(file, name) {
  for (const node of readSource(file).program.body) {
    if (node.type !== "ImportDeclaration" || !node.source.value.startsWith(".")) continue;
    const found = node.specifiers.find(({ local }) => local.name === name);
    if (found !== undefined) {
      return { local: found.imported.name, from: posix.join(posix.dirname(file), node.source.value) };
    }
  }
  return undefined;
}

const kinds = {
  FunctionDeclaration: "function",
  ClassDeclaration: "class",
  VariableDeclaration: "constant",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
};

function declaredNames(declaration) {
  if (declaration.type !== "VariableDeclaration") return [declaration.id?.name];
  return declaration.declarations.map(({ id }) => id.name);
}

/** A declaration as a reader needs it: a function without its body, a constant without a long value. */
function signatureOf(declaration, text) {
  const { type, start, end, body } = declaration;
  if (type === "FunctionDeclaration") return text.slice(start, body.start).trim();
  const whole = text.slice(start, end);
  return type === "VariableDeclaration" && whole.split("\n").length > 30 ? `${whole.split("\n")[0]} …` : whole;
}

/** Each field of an interface with its doc comment. */
function membersOf({ body }, { text, comments }) {
  return body.body.map((member) => {
    const comment = comments.findLast(({ end }) => end <= member.start && text.slice(end, member.start).trim() === "");
    return { name: text.slice(member.key?.start ?? member.start, member.key?.end ?? member.end), doc: comment?.value };
  });
}

/** The text and the tags of a doc comment. */
function readComment(value) {
  const lines = value.split("\n").map((line) => line.replace(/^\s*\* ?/, ""));
  const body = lines
    .join("\n")
    .replace(/^\*?\s*/, "")
    .trim();
  const [text = "", ...tags] = body.split(/^@(?=example\b|default\b|param\b|returns\b|throws\b|see\b)/m);
  const examples = tags
    .filter((tag) => tag.startsWith("example"))
    .map((tag) =>
      tag
        .slice("example".length)
        .replace(/^\s*```\w*\n|\n```\s*$/g, "")
        .trim(),
    );
  return {
    text: text.trim(),
    examples,
    tags: tags.filter((tag) => !tag.startsWith("example")).map((tag) => `@${tag.trim()}`),
  };
}

const sources = new Map();

function readSource(file) {
  if (!sources.has(file)) {
    const text = readFileSync(join(root, file), "utf8");
    const { program, comments, errors } = parseSync(file, text);
    if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
    sources.set(file, { text, program, comments });
  }
  return sources.get(file);
}
