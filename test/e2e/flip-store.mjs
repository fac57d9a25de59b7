/** Flips bytes of a store, each in a copy of its own, and runs commands over the copy. A line for each byte: its position and what came.
 *  Usage: node flip-store.mjs FILE FOLDER POSITION… */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { runCli } from "../../dist/cli/run-cli.js";

const [file, folder, ...positions] = process.argv.slice(2);
const bytes = readFileSync(file);
const commands = [["list"], ["show"], ["show", "small"], ["rm", "--all", "--dry-run"]];

for (const position of positions.map(Number)) {
  const copy = join(folder, `flipped-${position}.db`);
  copyFileSync(file, copy);
  const flipped = Buffer.from(bytes);
  flipped[position] ^= 0xff;
  writeFileSync(copy, flipped);
  const outcomes = [];
  for (const command of commands) outcomes.push(await call(["session", ...command, "--store", copy]));
  process.stdout.write(`${JSON.stringify({ position, outcomes })}\n`);
  for (const end of ["", "-wal", "-shm"]) rmSync(`${copy}${end}`, { force: true });
}
process.exit(0);

async function call(args) {
  let told = "";
  const stream = {
    write(text) {
      told += text;
    },
  };
  const code = await runCli(args, {
    env: { HOME: folder, PATH: process.env.PATH },
    cwd: () => folder,
    stdin: Readable.from([]),
    stdinKind: "other",
    stdout: { write: () => {} },
    stderr: stream,
  });
  return { args: args.slice(1, 3).join(" "), code, told: told.slice(0, 300) };
}
