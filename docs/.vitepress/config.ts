import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { listPages, sidebarOf, siteLink, slugOf } from "./pages.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, "");
// Where the site is served, such as /plimsoll/.
const base = process.env.DOCS_BASE ?? "/";

export default defineConfig({
  title: "Plimsoll",
  description: manifest.description,
  lang: "en",
  base,
  head: [["link", { rel: "icon", href: `${base}favicon.svg` }]],
  outDir: "../build/docs",
  cacheDir: "../build/docs-cache",
  ignoreDeadLinks: false,
  markdown: {
    // GitHub shows {braces} in a heading as they are.
    attrs: { disable: true },
    anchor: { slugify: slugOf },
    config(markdown) {
      markdown.core.ruler.push("site-links", ({ tokens, env }) => {
        const place = { page: env.relativePath, root, repository };
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const name = token.type === "image" ? "src" : "href";
          const address = token.attrGet(name);
          if (address !== null) token.attrSet(name, siteLink(address, place));
        }
      });
      // The pages are no Vue templates.
      const text = markdown.renderer.rules.text;
      markdown.renderer.rules.text = (...args) => text(...args).replaceAll("{{", "&#123;&#123;");
    },
  },
  themeConfig: {
    nav: [
      { text: "Guide", link: "/many-repositories", activeMatch: "^/[a-z-]+" },
      { text: "Changelog", link: `${repository}/blob/main/CHANGELOG.md` },
      { text: "Contributing", link: `${repository}/blob/main/CONTRIBUTING.md` },
    ],
    sidebar: sidebarOf(listPages(`${root}/docs`)),
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: "Edit this page on GitHub" },
    footer: { message: "Apache-2.0" },
  },
});
