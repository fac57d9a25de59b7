/** Makes one script and one style of src/web/browser/ for each page. They replace the empty ones of src/web/page-assets.ts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const browser = fileURLToPath(new URL("../src/web/browser/", import.meta.url));
const styles = { bill: ["page.css", "bill.css"], replay: ["page.css"] };

/** Returns the text of a module in place of page-assets. */
export async function bundlePages() {
  const assets = {};
  for (const [name, files] of Object.entries(styles)) {
    assets[name] = { script: await bundleScript(join(browser, `${name}.ts`)), style: files.map(readStyle).join("") };
  }
  return `export const pageAssets = ${JSON.stringify(assets)};\n`;
}

/** A plugin of vite for code that runs from src/. */
export function pageAssets() {
  return {
    name: "page-assets",
    enforce: "pre",
    load: (id) => (id.endsWith("/src/web/page-assets.ts") ? bundlePages() : null),
  };
}

async function bundleScript(input) {
  const build = await rolldown({ input, platform: "browser", tsconfig: false });
  const { output } = await build.generate({ format: "iife", minify: true });
  await build.close();
  const [{ code }] = output;
  if (output.length > 1 || /<\/script|<!--/i.test(code))
    throw new Error(`${input} cannot be a script inside of a page`);
  return code;
}

function readStyle(file) {
  const text = readFileSync(join(browser, file), "utf8");
  return text
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replace(/: /g, ":")
    .replace(/;\}/g, "}")
    .trim();
}
