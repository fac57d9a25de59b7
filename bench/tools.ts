/** Measures the budgeted tools beside the plain programs, in tokens and in time, and what `mcp wrap` adds to a call:
 *  `npm run bench:tools [-- --text] [--files N] [--rounds N] [--json]`. `--text` measures tokens only. Works in a temporary folder. Results go to stdout, progress to stderr. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureListing } from "./tools/measure-listing.ts";
import { measureSearch } from "./tools/measure-search.ts";
import { measureText } from "./tools/measure-text.ts";
import { measureWrap } from "./tools/measure-wrap.ts";
import { findRipgrep } from "./tools/plain-command.ts";
import { goalsOf, type Report, renderReport, renderText } from "./tools/render-report.ts";
import { createRepository } from "./tools/repository.ts";

/** Files of the repository in which tokens are compared. */
const SOURCE_FILES = 2_400;
const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const { files, rounds, json, text } = readArguments();
const folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-bench-")));
try {
  const tokens = await measureTokens(folder);
  const report = text ? undefined : await measure(folder);
  const rendered = () => [renderText(tokens), ...(report === undefined ? [] : [renderReport(report)])].join("\n");
  process.stdout.write(json ? `${JSON.stringify({ tokens, ...report }, null, 2)}\n` : rendered());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function readArguments(): { files: number; rounds: number; json: boolean; text: boolean } {
  try {
    const { values } = parseArgs({
      options: {
        files: { type: "string", default: "100000" },
        rounds: { type: "string", default: "7" },
        json: { type: "boolean", default: false },
        text: { type: "boolean", default: false },
      },
    });
    const whole = (name: "files" | "rounds", least: number): number => {
      const value = Number(values[name]);
      if (Number.isInteger(value) && value >= least) return value;
      throw new Error(`--${name} takes a whole number from ${least} on`);
    };
    return { files: whole("files", 2_000), rounds: whole("rounds", 1), json: values.json, text: values.text };
  } catch (error) {
    const usage = "usage: npm run bench:tools [-- --text] [--files N] [--rounds N] [--json]";
    console.error(`${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

async function measureTokens(temporary: string): ReturnType<typeof measureText> {
  progress(`comparing tokens in a repository of ${SOURCE_FILES} files`);
  return measureText({
    ...{ main, env: environment(join(temporary, "home")), folder: join(temporary, "sources") },
    modules: fileURLToPath(new URL("../../node_modules", import.meta.url)),
    ...{ files: SOURCE_FILES, ripgrep: await findRipgrep() },
  });
}

async function measure(temporary: string): Promise<Report> {
  const env = environment(join(temporary, "home"));
  const work = join(temporary, "work");
  mkdirSync(work);
  progress(`writing ${files} files`);
  const repository = await createRepository(join(temporary, "repository"), files);
  const server = { args: [main, "mcp", "--format", "json", "--total", "100000000"], cwd: repository.root, env };
  const ripgrep = await findRipgrep();
  progress("project_files");
  const listing = await measureListing(repository, { server, rounds });
  progress("search_content");
  const search = ripgrep === undefined ? [] : await measureSearch(repository, { server, rounds, ripgrep });
  progress("mcp wrap");
  const wrap = await measureWrap({ main, cwd: work, env, rounds });
  const measurements = [...listing, ...search, ...wrap];
  return {
    node: process.versions.node,
    rounds,
    repository: { files: repository.files, bytes: repository.bytes },
    measurements,
    goals: goalsOf(measurements),
    notes: ripgrep === undefined ? ["search_content was left out: there is no ripgrep to compare it with"] : [],
  };
}

/** A home of its own: nobody's configuration and nobody's store takes part. */
function environment(home: string): Record<string, string> {
  mkdirSync(home, { recursive: true });
  return { PATH: process.env.PATH ?? "", HOME: home };
}

function progress(step: string): void {
  process.stderr.write(`${step} …\n`);
}
