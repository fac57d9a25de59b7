/** The pages of the documentation site, their order and their links. The pages stay plain Markdown that GitHub shows, too:
 *  everything that only the site needs is here. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

export interface Page {
  /** Relative to docs/, such as `api/history.md`. */
  readonly path: string;
  readonly title: string;
}

export interface SidebarGroup {
  readonly text: string;
  readonly items: readonly { readonly text: string; readonly link: string }[];
}

/** The front page shows the README, so its links are relative to the repository. */
const frontPage = "index.md";

/** The sidebar's order. A page that is not listed here appears after these, in a group named after its folder. */
const knownGroups: Readonly<Record<string, readonly string[]>> = {
  "Start here": ["many-repositories.md", "long-sessions.md", "commands.md"],
  "Files of AI tools": ["inject.md", "packs.md", "verbosity.md", "prompts.md", "sync.md", "audit.md"],
  Conversations: ["history.md", "integrations.md", "serve.md", "policies.md", "intake.md", "tokens.md"],
  Spending: ["bill.md", "spend.md", "billing.md"],
  Tools: ["session.md", "mcp.md", "plugins.md", "fleet.md"],
  "Prompts and plans": ["compose.md", "nebula.md", "nebula-reference.md"],
  Safety: ["trust.md"],
};

/** Lists the pages under `docs`, except the front page. A page's title is its first heading. */
export function listPages(docs: string): Page[] {
  const entries = readdirSync(docs, { recursive: true, encoding: "utf8" });
  return entries
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".md") && path !== frontPage && !/(^|\/)(node_modules\/|\.)/.test(path))
    .sort((a, b) => (addressOf(a) < addressOf(b) ? -1 : 1))
    .map((path) => ({ path, title: titleOf(readFileSync(join(docs, path), "utf8")) ?? path }));
}

/** A folder's `index.md` has the folder's address, so it also comes first. */
function addressOf(path: string): string {
  return `/${path.replace(/(^|(?<=\/))index\.md$|\.md$/, "")}`;
}

function titleOf(markdown: string): string | undefined {
  return /^# +(.+?)\s*$/m.exec(markdown)?.[1]?.replaceAll("`", "");
}

/** Returns the sidebar: the known pages in their order, then every other page by its folder. */
export function sidebarOf(pages: readonly Page[]): SidebarGroup[] {
  const known = Object.entries(knownGroups).map(([text, paths]) => ({
    text,
    pages: paths.flatMap((path) => pages.find((page) => page.path === path) ?? []),
  }));
  const others = pages.filter(({ path }) => !Object.values(knownGroups).flat().includes(path));
  const folders = [...new Set(others.map(({ path }) => posix.dirname(path)))];
  const rest = folders.map((folder) => ({
    text: folderTitle(folder),
    pages: others.filter(({ path }) => posix.dirname(path) === folder),
  }));
  return [...known, ...rest]
    .filter((group) => group.pages.length > 0)
    .map(({ text, pages }) => ({ text, items: pages.map(sidebarItem) }));
}

function folderTitle(folder: string): string {
  if (folder === ".") return "More";
  return folder === "api" ? "API" : folder;
}

/** The sidebar is narrow: it shows a title up to its colon. */
function sidebarItem({ path, title }: Page): { text: string; link: string } {
  const [short = title] = title.split(":");
  return { text: short, link: addressOf(path) };
}

export interface LinkPlace {
  /** The page that holds the link, relative to docs/. */
  readonly page: string;
  /** The folder of the repository. */
  readonly root: string;
  /** The repository's address on GitHub. */
  readonly repository: string;
}

/** Returns the address that a page's link or picture has on the site. A file outside of docs/ is shown on GitHub.
 *  Throws if there is no such file, so that a dead link fails the build. */
export function siteLink(href: string, { page, root, repository }: LinkPlace): string {
  const [, path = "", anchor = ""] = /^([^#?]*)(.*)$/s.exec(href) ?? [];
  if (path === "" || path.startsWith("/") || /^[a-z][a-z0-9+.-]*:/i.test(path)) return href;
  const source = page === frontPage ? "README.md" : `docs/${page}`;
  const target = posix.join(posix.dirname(source), decodeURI(path));
  if (!existsSync(join(root, target))) throw new Error(`${source}: the link to ${path} leads to no file`);
  if (target.startsWith("docs/public/")) return target.slice("docs/public".length);
  if (/^docs\/.*\.md$/.test(target)) return `${posix.relative(posix.dirname(`docs/${page}`), target)}${anchor}`;
  return target === "README.md" && page !== frontPage
    ? `${posix.relative(posix.dirname(page), frontPage)}${anchor}`
    : `${repository}/blob/main/${encodeURI(target)}${anchor}`;
}

/** Returns the anchor of a heading as GitHub makes it, so that a link works in both places. */
export function slugOf(heading: string): string {
  const kept = heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, "");
  return kept.replaceAll(" ", "-");
}
