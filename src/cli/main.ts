#!/usr/bin/env node
/** The command. `--version` loads only the version, so that it costs no more than starting Node. The status line runs after
 *  every answer of an agent, so it loads only what it needs. */
import { printedVersion } from "./version.ts";

const [command, ...options] = process.argv.slice(2);
if (command === "statusline" && options.every((option) => option === "--json")) {
  const { printStatusLine } = await import("../clients/spend/status-line.ts");
  await printStatusLine(options, process.env);
} else if (!printedVersion(process.argv.slice(2))) {
  const { runProcess } = await import("./run-cli.ts");
  await runProcess();
}
