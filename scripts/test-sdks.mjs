/**
 * Installs the packed package beside each version of the SDKs that its peer dependencies name, as a user would, and runs a scripted
 * conversation through each: `npm run test:sdks`. Folders are temporary and outside of the project.
 * What cannot be run here is skipped, with the reason; a failure ends the process with 1.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

/** SDKs that are installed together, and the package that each conversation is about. */
const folders = [
  ["@anthropic-ai/sdk@0.60.0", "openai@6", "ai@6", "@ai-sdk/openai@3"],
  ["@anthropic-ai/sdk@0.122.0", "openai@7", "ai@7", "@ai-sdk/openai@4"],
  ["@anthropic-ai/sdk@1"],
];
const conversations = { "@anthropic-ai/sdk": "anthropic", openai: "openai", ai: "ai" };
const installTimeoutMs = 180_000;
const talkTimeoutMs = 60_000;
// Nothing is begun after that.
const latestStartMs = 360_000;
const late = { outcome: "skipped", reason: "the time for this check is over" };

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "plimsoll-sdks-"));
const counts = { passed: 0, failed: 0, skipped: 0 };
try {
  const archive = pack();
  for (const packages of folders) checkFolder(packages, archive);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed === 0 ? 0 : 1);

function pack() {
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", scratch], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return join(scratch, basename(packed.trim().split("\n").at(-1)));
}

function checkFolder(packages, archive) {
  const folder = mkdtempSync(join(scratch, "beside-"));
  const names = packages.map((each) => each.replace(/@[^@/]*$/, "")).filter((name) => name in conversations);
  const problem = install(folder, [archive, ...packages]);
  for (const name of names) {
    const version = problem === undefined ? ` ${manifestIn(folder, name).version}` : "";
    console.log(`> ${name}${version}`);
    const { outcome, reason } = problem ?? talk(folder, name);
    counts[outcome]++;
    if (reason !== undefined) console.log(`  ${outcome}: ${reason}`);
  }
  rmSync(folder, { recursive: true, force: true });
}

/** The outcome when it fails. A registry that is out of reach says nothing about the package. */
function install(folder, packages) {
  if (isLate()) return late;
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const args = ["install", "--no-audit", "--no-fund", ...packages];
  const { problem } = run("npm", args, { folder, timeoutMs: installTimeoutMs });
  if (problem === undefined) return undefined;
  const isOffline = /^(?:ENOTFOUND|ETIMEDOUT|ECONNREFUSED|ECONNRESET|EAI_AGAIN)$/.test(problem);
  return {
    outcome: isOffline ? "skipped" : "failed",
    reason: `npm could not install ${packages.slice(1).join(" ")}: ${problem}`,
  };
}

function talk(folder, name) {
  if (isLate()) return late;
  const needed = Number(/\d+/.exec(manifestIn(folder, name).engines?.node ?? "0")[0]);
  const node = nodeFor(needed);
  if (node === undefined) return { outcome: "skipped", reason: `it needs Node.js ${needed}, and npx cannot get one` };
  const script = "sdk-conversation.mjs";
  copyFileSync(join(root, "scripts", script), join(folder, script));
  const [command, ...args] = [...node, script, conversations[name]];
  const { stdout, problem } = run(command, args, { folder, timeoutMs: talkTimeoutMs });
  process.stdout.write(stdout);
  return problem === undefined ? { outcome: "passed" } : { outcome: "failed", reason: problem };
}

/** The command that starts a Node.js of at least this major version: the one that runs this, or one from the registry. */
function nodeFor(needed) {
  if (Number(process.versions.node.split(".")[0]) >= needed) return [process.execPath];
  const [command, ...args] = ["npx", "-y", "node@24"];
  const elsewhere = join(scratch, "node");
  mkdirSync(elsewhere, { recursive: true });
  const options = { folder: elsewhere, timeoutMs: installTimeoutMs };
  return run(command, [...args, "--version"], options).problem === undefined ? [command, ...args] : undefined;
}

function run(command, args, { folder, timeoutMs }) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    timeout: timeoutMs,
    // Under `npm run --silent` npm would not say why it failed.
    env: { ...process.env, npm_config_loglevel: "error" },
  });
  if (status === 0) return { stdout };
  const code = /^npm (?:error|ERR!) code (\w+)/m.exec(stderr)?.[1];
  return { stdout, problem: code ?? error?.code ?? stderr.trim().split("\n").slice(-12).join("\n  ") };
}

function manifestIn(folder, name) {
  return JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
}

function isLate() {
  return performance.now() > latestStartMs;
}
