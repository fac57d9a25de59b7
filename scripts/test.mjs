/**
 * The whole check: format and lint, types, build, unused code, the package, tests.
 * Without an option it leaves out the tests with the tag `deep`. `--deep` runs them too, and all tests with their full numbers.
 * `--perf` runs the tests that compare times and nothing else, one file at a time.
 * Ends with a plain line "N passed, N failed" taken from vitest's own report, so that no step can pass unseen.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const perf = process.argv.includes("--perf");
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-test-"));
const report = join(scratch, "report.json");

const tag = 'tags: ["perf"]';

/** The steps of one row run side by side: each alone leaves a part of the machine idle. */
const rows = [
  [
    ["format and lint", "biome", ["check", "--error-on-warnings", "."]],
    ["types", "tsc", ["--noEmit"]],
    ["build", process.execPath, ["scripts/build.mjs", "--types-checked-elsewhere"]],
  ],
  [
    ["unused code and package", "npm", ["run", "--silent", "check:package"]],
    [
      "tests",
      "vitest",
      ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...chosenTests()],
    ],
  ],
].map((row) => row.filter(([name]) => !perf || name === "build" || name === "tests"));

let failedSteps = [];
for (const row of rows) {
  const passes = await Promise.all(row.map(runStep));
  failedSteps = row.filter((_, index) => !passes[index]).map(([name]) => name);
  if (failedSteps.length > 0) break;
}

console.log(failedSteps.length === 0 ? "" : `\nfailed: ${failedSteps.join(", ")}`);
const { passed, failed, skipped } = countResults();
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
rmSync(scratch, { recursive: true, force: true });
process.exit(failedSteps.length === 0 && failed === 0 ? 0 : 1);

/** Returns whether the step passes. The tests print while they run, every other step when it has ended. */
function runStep([name, command, args]) {
  const isLive = name === "tests";
  const child = spawn(command, args, {
    cwd: root,
    stdio: ["ignore", isLive ? "inherit" : "pipe", isLive ? "inherit" : "pipe"],
    // Windows starts npm and the files of node_modules/.bin only through a shell.
    shell: process.platform === "win32" && command !== process.execPath,
    env: {
      ...process.env,
      // With more certificates Node takes twice as long to start, and this starts it hundreds of times. No step leaves this machine.
      NODE_EXTRA_CA_CERTS: "",
      PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`,
      ...(deep && { PLIMSOLL_DEEP: "1" }),
    },
  });
  let printed = "";
  if (isLive) console.log(`\n> ${name}`);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  }
  return new Promise((resolve) => {
    child.on("error", ({ message }) => {
      console.log(`\n> ${name}\n${message}`);
      resolve(false);
    });
    child.on("close", (code) => {
      if (!isLive) console.log(`\n> ${name}\n${printed.trimEnd()}`);
      resolve(code === 0);
    });
  });
}

/** A test that compares times needs the processor for itself. */
function chosenTests() {
  if (deep) return ["--tagsFilter=!perf"];
  if (!perf) return ["--tagsFilter=!perf && !deep"];
  const files = ["src", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
  );
  const timed = files.filter(
    (file) => file.endsWith(".test.ts") && readFileSync(join(root, file), "utf8").includes(tag),
  );
  return ["--tagsFilter=perf", "--maxWorkers=1", ...timed];
}

/** A step that fails without a failed test is one failure, not none. */
function countResults() {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, success } = JSON.parse(readFileSync(report, "utf8"));
    return {
      passed: numPassedTests,
      failed: success && failedSteps.length === 0 ? numFailedTests : Math.max(1, numFailedTests),
      skipped: numPendingTests,
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
