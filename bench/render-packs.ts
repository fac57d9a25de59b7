/** A process of its own, run by inject/measure-packs.ts: loads a content directory, renders it for its adapters without writing, and prints
 *  the processor seconds of both. */

import { createCounter } from "../src/core/tokens/index.ts";
import { loadConfig } from "../src/host/index.ts";
import { injectFiles, loadPacks, readProjectTree } from "../src/rules/index.ts";

const [contentDirectory = ".", root = "."] = process.argv.slice(2);
const env = process.env;
const { values: config } = await loadConfig({ cwd: root, env });
const counter = await createCounter("bytes/4");
const started = process.cpuUsage();
const { packs, profile, adapters, problems } = await loadPacks({
  config,
  scope: "project",
  root,
  env,
  contentDirectory,
});
if (problems.length > 0) throw new Error(problems[0]!.message);
const loaded = process.cpuUsage();
const { results } = await injectFiles({
  ...{ adapters, known: adapters, ownFiles: [] },
  tree: await readProjectTree(root, env),
  packs,
  content: { title: config.title, profile, notes: [], facts: [] },
  places: { scope: "project", root, home: root },
  env,
  counter,
  verbosityOf: {},
  defaultOnOverflow: "drop",
  force: false,
  dryRun: true,
});
const rendered = process.cpuUsage();
const seconds = (from: NodeJS.CpuUsage, to: NodeJS.CpuUsage) => (to.user - from.user + to.system - from.system) / 1e6;
process.stdout.write(
  JSON.stringify({
    loadSeconds: seconds(started, loaded),
    renderSeconds: seconds(loaded, rendered),
    bytes: results.reduce((sum, { bytes }) => sum + bytes, 0),
    packs: results.map((result) => result.packs.length),
  }),
);
