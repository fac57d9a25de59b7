/** Loaded into the command by --import: tells on stderr how much memory the process has used at most, in MB. */
import { writeSync } from "node:fs";

process.on("exit", () => {
  writeSync(2, `peak memory ${Math.ceil(process.resourceUsage().maxRSS / 1024)} MB\n`);
});
