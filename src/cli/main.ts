#!/usr/bin/env node
/** The command. Nothing but the version is loaded for the version: it should cost what starting Node costs. */
import { readVersion } from "./version.ts";

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${readVersion()}\n`);
} else {
  const { runProcess } = await import("./run-process.ts");
  await runProcess();
}
