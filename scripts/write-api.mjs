/** Writes the reference pages of the library, docs/api/*.md, from the doc comments in src/. `--check` only compares. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readPublicApi } from "./public-api.mjs";

const folder = fileURLToPath(new URL("../docs/api/", import.meta.url));
const pages = renderPages();
const stale = [...pages]
  .filter(([name, text]) => !existsSync(join(folder, name)) || read(name) !== text)
  .map(([name]) => name);
const extra = existsSync(folder) ? readdirSync(folder).filter((name) => !pages.has(name)) : [];

if (process.argv.includes("--check")) {
  if (stale.length + extra.length > 0) {
    console.error(`docs/api is not current: ${[...stale, ...extra].join(", ")}. Run npm run docs:api.`);
    process.exit(1);
  }
} else {
  mkdirSync(folder, { recursive: true });
  for (const name of extra) rmSync(join(folder, name));
  for (const [name, text] of pages) writeFileSync(join(folder, name), text);
  console.log(`${pages.size} pages in docs/api, ${stale.length} changed`);
}

function read(name) {
  return readFileSync(join(folder, name), "utf8");
}

function renderPages() {
  const doors = readPublicApi();
  const pages = new Map(doors.map((door) => [pageName(door), renderDoor(door)]));
  const rows = doors.map((door) => `| [\`${door.path}\`](${pageName(door)}) | ${firstSentence(door.summary.text)} |`);
  const index = [
    "# Library reference",
    "",
    "Each import path has a page.",
    "",
    "| import path | what it has |",
    "|---|---|",
    ...rows,
  ];
  pages.set("index.md", `${index.join("\n")}\n`);
  return pages;
}

function pageName({ path }) {
  return path === "plimsoll" ? "plimsoll.md" : `${path.replace("plimsoll/", "").replaceAll("/", "-")}.md`;
}

function renderDoor({ path, summary, names }) {
  const values = names.filter(({ kind }) => !isType(kind));
  const types = names.filter(({ kind }) => isType(kind));
  const parts = [`# ${path}`, "", summary.text, ""];
  for (const each of values) parts.push(...renderName(each));
  if (types.length > 0) parts.push("## Types", "", ...types.flatMap((each) => renderName(each, "###")));
  return `${parts
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()}\n`;
}

function isType(kind) {
  return kind === "interface" || kind === "type";
}

function renderName({ name, signature, doc }, mark = "##") {
  const parts = [`${mark} ${name}`, "", escapeMarkup(doc.text), "", "```ts", signature, "```", ""];
  if (doc.tags.length > 0) parts.push(...doc.tags.map((tag) => `- ${escapeMarkup(tag)}`), "");
  for (const example of doc.examples) parts.push("Example:", "", "```ts", example, "```", "");
  return parts;
}

/** Text between angle brackets would be taken for HTML by the documentation site. Code spans keep theirs. */
function escapeMarkup(text) {
  return text.replace(/`[^`]*`|[<{]/g, (found) => (found.length > 1 ? found : found === "<" ? "&lt;" : "&#123;"));
}

function firstSentence(text) {
  return (/^.*?\.(?=\s|$)/s.exec(text)?.[0] ?? text).replaceAll("\n", " ");
}
