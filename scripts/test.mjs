/**
 * The whole check: format and lint, types, build, unused code, the package, tests.
 * `--deep` runs the tests with their full numbers.
 * Ends with a plain line "N passed, N failed" taken from vitest's own report, so that no step can pass unseen.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-test-"));
const report = join(scratch, "report.json");

const steps = [
  ["format and lint", "biome", ["check", "--error-on-warnings", "."]],
  ["types", "tsc", ["--noEmit"]],
  ["build", process.execPath, ["scripts/build.mjs"]],
  ["unused code and package", "npm", ["run", "--silent", "check:package"]],
  ["tests", "vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`]],
];

let failedStep = "";
for (const [name, command, args] of steps) {
  console.log(`\n> ${name}`);
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    // Windows starts npm and the files of node_modules/.bin only through a shell.
    shell: process.platform === "win32" && command !== process.execPath,
    env: {
      ...process.env,
      PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`,
      ...(deep && { PLIMSOLL_DEEP: "1" }),
    },
  });
  if (status !== 0) {
    failedStep = name;
    break;
  }
}

console.log(failedStep === "" ? "" : `\nfailed: ${failedStep}`);
const { passed, failed, skipped } = countResults();
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
rmSync(scratch, { recursive: true, force: true });
process.exit(failedStep === "" && failed === 0 ? 0 : 1);

/** A step that fails before any test ran is one failure, not none. */
function countResults() {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, success } = JSON.parse(
      readFileSync(report, "utf8"),
    );
    return {
      passed: numPassedTests,
      failed: success ? numFailedTests : Math.max(1, numFailedTests),
      skipped: numPendingTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
