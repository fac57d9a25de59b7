/**
 * Mutation tests: changes one expression of a module at a time and runs the tests of that module. A change that no test notices
 * ("survivor") is a gap in the tests, or it changes nothing that anybody can see; those are listed with a reason in
 * `scripts/mutants/survivors.mjs`. Fails if another one survives, and if a listed one no longer does.
 *
 * npm run test:mutants                     all modules, about an hour on two cores
 * npm run test:mutants -- ledger compose   the modules with these words in their names
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Stryker } from "@stryker-mutator/core";
import { modules } from "./mutants/modules.mjs";
import { survivors as knownSurvivors } from "./mutants/survivors.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
const words = process.argv.slice(2);
const chosen = modules.filter(({ file }) => words.length === 0 || words.some((word) => file.includes(word)));
if (chosen.length === 0)
  throw new Error(`No module has ${words.join(" or ")} in its name. See scripts/mutants/modules.mjs.`);

let killed = 0;
let survived = 0;
let isClean = true;
for (const { file, tests } of chosen) {
  const mutants = await runModule(file, tests);
  const known = new Map(knownSurvivors.filter((row) => row.file === file).map((row) => [keyOf(row), row]));
  const alive = mutants.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  const unknown = alive.filter((mutant) => !known.has(keyOf(mutant)));
  const aliveKeys = new Set(alive.map(keyOf));
  const gone = [...known.keys()].filter((key) => !aliveKeys.has(key));
  killed += mutants.length - alive.length;
  survived += alive.length;
  console.log(
    `${file}: ${mutants.length} mutants, ${alive.length} survive, ${alive.length - unknown.length} of them with a reason`,
  );
  for (const { line, original, replacement, status } of unknown)
    console.log(
      `  line ${line}${status === "NoCoverage" ? " (no test runs it)" : ""}: ${original}  ->  ${replacement}`,
    );
  for (const key of gone) console.log(`  listed, but a test notices it now: ${key}`);
  isClean &&= unknown.length === 0 && gone.length === 0;
}
console.log(`${killed} noticed, ${survived} not noticed`);
process.exitCode = isClean ? 0 : 1;

/** Returns the mutants of a module with their source, what replaces it, and what became of them. */
async function runModule(file, tests) {
  const folder = join(root, "build/mutants");
  const report = join(folder, "report.json");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  process.env.PLIMSOLL_MUTANT_TESTS = JSON.stringify(tests);
  await new Stryker({
    mutate: [file],
    testRunner: "vitest",
    vitest: { configFile: "scripts/mutants/vitest.config.ts", related: false },
    coverageAnalysis: "perTest",
    concurrency: 2,
    // What a module does once when it is loaded needs a process for each mutant. Tables of data are tested elsewhere.
    ignoreStatic: true,
    // The wording of errors and notes is pinned in golden files.
    mutator: { excludedMutations: ["StringLiteral"] },
    // TypeScript 7 has no programming interface, and Stryker would rewrite paths in this file with it.
    tsconfigFile: "none",
    reporters: ["json"],
    jsonReporter: { fileName: report },
    tempDirName: join(folder, "sandbox"),
    logLevel: "warn",
  }).runMutationTest();
  const { source, mutants } = JSON.parse(readFileSync(report, "utf8")).files[file];
  const lines = source.split("\n");
  return mutants
    .filter(({ status }) => status !== "Ignored")
    .map(({ location: { start, end }, replacement, status, mutatorName }) => ({
      line: start.line,
      original: oneLine(textBetween(lines, start, end)),
      replacement: oneLine(replacement ?? mutatorName),
      status,
    }));
}

function textBetween(lines, start, end) {
  if (start.line === end.line) return lines[start.line - 1].slice(start.column - 1, end.column - 1);
  const between = lines.slice(start.line, end.line - 1);
  return [lines[start.line - 1].slice(start.column - 1), ...between, lines[end.line - 1].slice(0, end.column - 1)].join(
    "\n",
  );
}

/** Lines move with every change, so a mutant is known by its text. */
function keyOf({ original, replacement }) {
  return `${original}  ->  ${replacement}`;
}

function oneLine(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= 160 ? line : `${line.slice(0, 100)} … ${line.slice(-57)}`;
}
