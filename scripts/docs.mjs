/** Builds the documentation site into build/docs, or serves it while pages are edited: `node scripts/docs.mjs build|dev`.
 *  What the site needs is installed in docs/, apart from the package's own dependencies. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const docs = fileURLToPath(new URL("../docs", import.meta.url));
const [task = "build", ...rest] = process.argv.slice(2);

if (!isInstalled()) run("npm", ["ci", "--no-audit", "--no-fund"]);
run(process.execPath, [join(docs, "node_modules/vitepress/bin/vitepress.js"), task, ...rest]);

function isInstalled() {
  const { devDependencies } = JSON.parse(readFileSync(join(docs, "package.json"), "utf8"));
  const installed = join(docs, "node_modules/vitepress/package.json");
  return existsSync(installed) && JSON.parse(readFileSync(installed, "utf8")).version === devDependencies.vitepress;
}

function run(command, args) {
  const shell = process.platform === "win32" && command === "npm";
  const { status } = spawnSync(command, args, { cwd: docs, stdio: "inherit", shell });
  if (status !== 0) process.exit(status ?? 1);
}
