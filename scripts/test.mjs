/**
 * The whole check: format and lint, types, build, unused code, the package, tests.
 * Without an option it leaves out the tests with the tag `deep`. `--deep` runs them too, and all tests with their full numbers.
 * `--perf` runs the tests that compare times and nothing else, one file at a time.
 * Fails if a test changes something above its temporary directory.
 * Ends with a plain line "N passed, N failed" taken from vitest's own report, so that no step can pass unseen.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const perf = process.argv.includes("--perf");
// Short names, because the path of a socket may have at most 104 bytes on macOS.
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-"));
const temporary = join(scratch, "d", "t");
const report = join(temporary, "report.json");
const decoys = makeDecoys();

const tag = 'tags: ["perf"]';

/** The steps of one row run side by side: each alone leaves a part of the machine idle. */
const rows = [
  [
    ["format and lint", "biome", ["check", "--error-on-warnings", "."]],
    ["types", "tsc", ["--noEmit"]],
    ["types of pages", "tsc", ["-p", "src/web/browser"]],
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

const changed = changedDecoys();
if (changed.length > 0) {
  console.log(`\n> changed above the temporary directory of the tests\n${changed.join("\n")}`);
  failedSteps.push("hermetic tests");
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
      // Windows has the other two.
      ...{ TMPDIR: temporary, TEMP: temporary, TMP: temporary },
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

/** Puts everything that could lead a test out of its own folder above the temporary directory: what agents' sandboxes
 *  leave in /tmp, a project, and a real repository around both. Returns how each entry looks. */
function makeDecoys() {
  const files = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/objects/info/packs": "",
    ".git/refs/heads/none": "",
    "AGENTS.md": "# Decoy\n",
    "d/.git/": "",
    "d/.plimsoll/config.yaml": "tools: [claude-code]\nbudgets:\n  claude-code: 100\n",
    "d/.plimsoll/packs/decoy/pack.yaml": "id: decoy\nname: Decoy\ndescription: A decoy\ntags: [decoy]\nbase: true\n",
    "d/.plimsoll/packs/decoy/context.md": "- No test sees this rule.\n",
    "d/.mcp.json": '{ "mcpServers": { "decoy": { "command": "decoy" } } }\n',
    "d/AGENTS.md": "# Decoy\n",
    "d/CLAUDE.md": "# Decoy\n",
  };
  mkdirSync(temporary, { recursive: true });
  // As in /tmp: some tests run programs as another user.
  chmodSync(scratch, 0o755);
  chmodSync(temporary, 0o1777);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(scratch, path.endsWith("/") ? path : dirname(path)), { recursive: true });
    if (!path.endsWith("/")) writeFileSync(join(scratch, path), text);
  }
  return describeDecoys();
}

function describeDecoys() {
  const paths = readdirSync(scratch, { recursive: true }).filter((path) => !join(scratch, path).startsWith(temporary));
  return new Map(
    paths.map((path) => {
      const stats = lstatSync(join(scratch, path));
      return [path, stats.isDirectory() ? "a folder" : `${stats.ino} ${stats.mtimeMs} ${stats.size}`];
    }),
  );
}

function changedDecoys() {
  const now = describeDecoys();
  return [...new Set([...decoys.keys(), ...now.keys()])].filter((path) => decoys.get(path) !== now.get(path)).sort();
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
