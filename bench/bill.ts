/** Measures `bill` beside ccusage on the same generated recordings: token sums, time and memory.
 *
 *    npm install --prefix DIR ccusage
 *    npm run bench:bill -- --ccusage DIR [--megabytes 1000]
 *
 *  Recordings are written to a temporary folder and deleted afterwards. Without --ccusage only `bill` is measured. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { generateBilledSession, type Tokens } from "../test/generate/billed-sessions.ts";

const { values } = parseArgs({
  options: { ccusage: { type: "string" }, megabytes: { type: "string", default: "1000" }, keep: { type: "string" } },
});
const command = join(fileURLToPath(new URL("../../", import.meta.url)), "dist/cli/main.js");
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const kinds = ["uncached", "write5m", "write1h", "read", "output"] as const;

interface Corpus {
  readonly bytes: number;
  readonly files: number;
  readonly totals: Tokens & { readonly calls: number };
}

/** Three sessions of Claude Code to one of Codex. Every tenth session is there twice, as a fork with other calls at its
 *  end would be. */
function writeCorpus(home: string, megabytes: number): Corpus {
  const totals = { calls: 0, uncached: 0, write5m: 0, write1h: 0, read: 0, output: 0 };
  let bytes = 0;
  let files = 0;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    bytes += Buffer.byteLength(text);
    files++;
  };
  for (let seed = 1; bytes < megabytes * 1e6; seed++) {
    const agent = seed % 4 === 0 ? "codex" : "claude-code";
    const recording = generateBilledSession({ seed, agent, calls: 40 + ((seed * 37) % 400), resultChars: 12_000 });
    const { text, session } = recording;
    for (const kind of ["calls", ...kinds] as const) totals[kind] += recording.totals[kind];
    if (agent === "codex") write(join(home, `.codex/sessions/2026/10/0${seed % 9}/rollout-${session}.jsonl`), text);
    else write(join(home, `.claude/projects/project-${seed % 7}/${session}.jsonl`), text);
    if (agent !== "codex" && seed % 10 === 1) {
      write(
        join(home, `.claude/projects/project-${seed % 7}/${session}-fork.jsonl`),
        text.replaceAll(`"${session}"`, `"${session}-fork"`),
      );
    }
  }
  return { bytes, files, totals };
}

interface Run {
  readonly seconds: number;
  /** Seconds of processor time. */
  readonly processor: number;
  readonly megabytes: number;
  readonly text: string;
}

/** Runs a program and samples the memory and the processor time of its process. */
async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Run> {
  const { readFileSync } = await import("node:fs");
  const start = performance.now();
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  let peak = 0;
  let ticks = 0;
  const timer = setInterval(() => {
    try {
      const [user = 0, system = 0] = readFileSync(`/proc/${child.pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")
        .slice(11, 13)
        .map(Number);
      ticks = Math.max(ticks, user + system);
      const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
      peak = Math.max(peak, Number(kilobytes ?? 0) / 1000);
    } catch {
      // The process has ended.
    }
  }, 20);
  const pieces: Buffer[] = [];
  for await (const piece of child.stdout) pieces.push(piece as Buffer);
  clearInterval(timer);
  const seconds = (performance.now() - start) / 1000;
  return { seconds, processor: ticks / 100, megabytes: peak, text: Buffer.concat(pieces).toString() };
}

function report(name: string, { seconds, processor, megabytes }: Run, base?: Run): void {
  const ratio = base === undefined ? "" : `, ${(seconds / base.seconds).toFixed(2)} × the time of ccusage`;
  print(
    `${name}: ${seconds.toFixed(1)} s, ${processor.toFixed(1)} s of processor time, ${megabytes.toFixed(0)} MB at most${ratio}`,
  );
}

const home = values.keep ?? mkdtempSync(join(tmpdir(), "plimsoll-bill-"));
try {
  const corpus = writeCorpus(home, Number(values.megabytes));
  print(`${(corpus.bytes / 1e6).toFixed(0)} MB in ${corpus.files} files, ${corpus.totals.calls} calls`);
  const env = { HOME: home, XDG_STATE_HOME: join(home, "state"), CODEX_HOME: join(home, ".codex") };
  const bill = [command, "bill", "--json", "--by", "agent"];
  const peer = values.ccusage === undefined ? undefined : join(values.ccusage, "node_modules/.bin/ccusage");
  const theirs = peer === undefined ? undefined : await run(peer, ["daily", "--json", "--offline"], env);
  if (theirs !== undefined) report("ccusage, first run", theirs);
  const first = await run(process.execPath, bill, env);
  report("bill, first run", first, theirs);
  const second = await run(process.execPath, bill, env);
  report("bill, second run", second, theirs);
  const { total } = JSON.parse(first.text);
  const ours = kinds.map(
    (kind) =>
      `${kind} ${total[kind]}${total[kind] === corpus.totals[kind] ? "" : ` (written: ${corpus.totals[kind]})`}`,
  );
  print(`bill: ${total.calls} calls, ${ours.join(", ")}`);
  if (kinds.some((kind) => total[kind] !== corpus.totals[kind])) process.exitCode = 1;
  if (theirs !== undefined) print(`ccusage: ${JSON.stringify(JSON.parse(theirs.text).totals)}`);
} finally {
  if (values.keep === undefined) rmSync(home, { recursive: true, force: true });
}
