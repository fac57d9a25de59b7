/** Runs commands one after the other in this process, and prints a JSON line before and after each one. Arguments: a
 *  JSON file with `cwd`, `env`, `commands` ([{ args, input? }]) and `rounds`. */
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { runCli } from "../../dist/cli/run-cli.js";

const { cwd, env, commands, rounds } = JSON.parse(readFileSync(process.argv[2], "utf8"));
process.chdir(cwd);
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

for (let round = 0; round < rounds; round++) {
  for (const { args, input } of commands) {
    tell({ begin: args.join(" ") });
    const shown = { stdout: "", stderr: "" };
    const writeTo = (stream) => ({
      write(text) {
        shown[stream] += text;
      },
    });
    const [begun, used] = [performance.now(), process.cpuUsage()];
    const code = await runCli(args, {
      env,
      cwd: () => cwd,
      stdin: Readable.from(input === undefined ? [] : [Buffer.from(input)]),
      stdinKind: input === undefined ? "other" : "piped",
      stdout: writeTo("stdout"),
      stderr: writeTo("stderr"),
    });
    tell({ end: args.join(" "), code, ms: performance.now() - begun, cpuMs: cpuSince(used), ...shown });
  }
}
function cpuSince(used) {
  const { user, system } = process.cpuUsage(used);
  return (user + system) / 1000;
}

// In kilobytes.
// Not `maxRSS`, which begins with what the process that started this one had.
const isLinux = process.platform === "linux";
const peak = isLinux
  ? Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1])
  : process.resourceUsage().maxRSS;
tell({ maxRss: peak });
process.exit(0);
