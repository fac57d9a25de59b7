/** Builds dist/ from nothing, so that a file removed from src/ never lingers in the package. */
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const tsc = fileURLToPath(new URL("../node_modules/.bin/tsc", import.meta.url));
const { status } = spawnSync(tsc, ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
chmodSync(`${root}dist/cli/main.js`, 0o755);
