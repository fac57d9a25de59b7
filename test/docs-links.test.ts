/** Every relative link of the repository's pages leads to a file and, with an anchor, to a heading in it: on GitHub and on the
 *  documentation site, which takes the same pages. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listPages, sidebarOf, siteLink, slugOf } from "../docs/.vitepress/pages.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...listPages(join(root, "docs")).map(({ path }) => join("docs", path)),
  ...readdirSync(join(root, "examples")).map((name) => join("examples", name, "README.md")),
].filter((file) => existsSync(join(root, file)));

test.each(files)("the relative links in %s lead to files and headings", (file) => {
  expect(deadLinks(root, file)).toEqual([]);
});

test("a link to a missing file or heading is found, and one in a code block is none", () => {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-links-"));
  const page = ["# A `b`: *c*", "[good](#a-b-c) [good](sub/x.md#two-1)", "[bad](y.md) [bad](#d) [bad](sub/x.md#three)"];
  writeFileSync(
    join(folder, "page.md"),
    [...page, "```", "[no link](z.md)", "```", "`[no](link.md)`", "[bad]: q.md"].join("\n"),
  );
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, "sub/x.md"), "## Two\n## Two\n```\n## Three\n```\n");
  const found = deadLinks(folder, "page.md");
  rmSync(folder, { recursive: true });
  expect(found).toEqual(["y.md", "#d", "sub/x.md#three", "q.md"]);
});

test("the site's sidebar shows every page of docs/ once", () => {
  const pages = listPages(join(root, "docs"));
  const shown = sidebarOf(pages).flatMap(({ items }) => items.map(({ link }) => link));
  expect(shown.sort()).toEqual(pages.map(({ path }) => `/${path.replace(/(?<=\/)index\.md$|\.md$/, "")}`).sort());
});

test("the site's sidebar shows a new page by itself, with its heading and under its folder", () => {
  const docs = mkdtempSync(join(tmpdir(), "plimsoll-docs-"));
  const add = (path: string, text: string) => {
    mkdirSync(dirname(join(docs, path)), { recursive: true });
    writeFileSync(join(docs, path), text);
  };
  add("index.md", "# Front");
  add("new.md", "Text.\n\n# New `page`: what it is\n");
  add("packs.md", "# Packs");
  add("inject.md", "# Inject: files");
  add("api/history.md", "# `plimsoll/history`");
  add("api/index.md", "# The library");
  add("node_modules/some/README.md", "# Some");
  const sidebar = sidebarOf(listPages(docs));
  rmSync(docs, { recursive: true });
  const shown = sidebar.map(({ text, items }) => [text, ...items.map((item) => `${item.text} ${item.link}`)]);
  expect(shown).toEqual([
    ["Files of AI tools", "Inject /inject", "Packs /packs"],
    ["API", "The library /api/", "plimsoll/history /api/history"],
    ["More", "New page /new"],
  ]);
});

test("the site shows pages of docs/ itself and every other file on GitHub", () => {
  const linkOf = (href: string, page: string) => siteLink(href, { page, root, repository: "https://x.test/r" });
  expect(linkOf("policies.md#a", "history.md")).toBe("policies.md#a");
  expect(linkOf("../policies.md", "api/history.md")).toBe("../policies.md");
  expect(linkOf("docs/policies.md", "index.md")).toBe("policies.md");
  expect(linkOf("docs/public/favicon.svg", "index.md")).toBe("/favicon.svg");
  expect(linkOf("../README.md#quick-start", "history.md")).toBe("index.md#quick-start");
  expect(linkOf("../../README.md", "api/history.md")).toBe("../index.md");
  expect(linkOf("../src/core/errors.ts", "history.md")).toBe("https://x.test/r/blob/main/src/core/errors.ts");
  expect(linkOf("ARCHITECTURE.md#layers", "index.md")).toBe("https://x.test/r/blob/main/ARCHITECTURE.md#layers");
  for (const href of ["#layers", "https://example.com/a.md", "mailto:a@example.com"]) {
    expect(linkOf(href, "history.md")).toBe(href);
  }
  expect(() => linkOf("../gone.md", "history.md")).toThrow("docs/history.md: the link to ../gone.md leads to no file");
});

function deadLinks(folder: string, file: string): string[] {
  const prose = withoutCode(readFileSync(join(folder, file), "utf8")).replace(/`[^`\n]*`/g, "");
  const links = [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)/gm)];
  const targets = links.map(([, inline, reference]) => inline ?? reference ?? "");
  return targets.filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target) && !resolves(folder, file, target));
}

function resolves(folder: string, file: string, target: string): boolean {
  const [path = "", anchor] = target.split("#");
  const page = join(folder, path === "" ? file : join(dirname(file), decodeURI(path)));
  if (!existsSync(page)) return false;
  return anchor === undefined || !page.endsWith(".md") || anchorsOf(page).has(decodeURIComponent(anchor));
}

/** GitHub numbers the anchors of headings that have the same text. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of withoutCode(readFileSync(page, "utf8")).matchAll(/^#{1,6} +(.+?)\s*#*$/gm)) {
    const slug = slugOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

function withoutCode(markdown: string): string {
  return markdown.replace(/^ *(`{3,}|~{3,})[\s\S]*?(?:^ *\1[`~]*\s*$|(?![\s\S]))/gm, "");
}
