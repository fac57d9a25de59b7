/** Measures `plimsoll inject` beside its peers: `npm run bench:inject [-- --rounds N] [--inherit] [--json]`. Peers are installed into a
 *  temporary folder; without a registry they are left out. Results go to stdout, progress to stderr. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchCommands } from "./inject/commands.ts";
import { measureCommands } from "./inject/measure-commands.ts";
import { measurePacks } from "./inject/measure-packs.ts";
import { installPeers } from "./inject/peers.ts";
import { goalsOf, type Report, renderReport } from "./inject/render-report.ts";

const { rounds, inherit, json } = readArguments();
const folder = mkdtempSync(join(tmpdir(), "plimsoll-bench-"));
try {
  const report = measure(folder);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function readArguments(): { rounds: number; inherit: boolean; json: boolean } {
  try {
    const options = {
      rounds: { type: "string", default: "15" },
      inherit: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    } as const;
    const { values } = parseArgs({ options });
    const rounds = Number(values.rounds);
    if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds takes a whole number from 1 on");
    return { rounds, inherit: values.inherit, json: values.json };
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: npm run bench:inject [-- --rounds N] [--inherit] [--json]`);
    process.exit(2);
  }
}

function measure(temporary: string): Report {
  const step = <T>(name: string, work: () => T): T => {
    process.stderr.write(`${name} …\n`);
    return work();
  };
  const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  const env = environment(join(temporary, "home"));
  const { peers, notes } = step("installing peers", () => installPeers(join(temporary, "peers")));
  const commands = step("commands", () =>
    measureCommands(benchCommands({ folder: temporary, main, peers }), { rounds, env }),
  );
  const packs = step("many packs", () => measurePacks(temporary, { main, env }));
  return {
    node: process.versions.node,
    environment: inherit ? "inherited" : "clean",
    rounds,
    commands,
    packs,
    goals: goalsOf(commands, packs),
    notes,
  };
}

/** A home of its own: nobody's configuration takes part. Variables such as NODE_EXTRA_CA_CERTS slow every start of Node down and make
 *  all ratios look better, so they take part only when asked for. */
function environment(home: string): NodeJS.ProcessEnv {
  mkdirSync(home, { recursive: true });
  return { ...(inherit ? process.env : { PATH: process.env.PATH }), HOME: home, NO_COLOR: "1" };
}
