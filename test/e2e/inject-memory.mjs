/** Loaded into the command by --import: tells on stderr how much memory the process has used at most, in MB. */
import { readFileSync, writeSync } from "node:fs";

process.on("exit", () => {
  // Not `maxRSS`, which begins with what the process that started this one had.
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1];
  writeSync(2, `peak memory ${Math.ceil(peak / 1024)} MB\n`);
});
