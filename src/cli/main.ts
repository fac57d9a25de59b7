#!/usr/bin/env node
/** The command. Nothing but the version is loaded for the version: it should cost what starting Node costs. */
import { printedVersion } from "./version.ts";

if (!printedVersion(process.argv.slice(2))) {
  const { runProcess } = await import("./run-process.ts");
  await runProcess();
}
