import { isAbsolute, join } from "node:path";
import { type Adapter, isEnforced } from "../../adapters/index.ts";
import {
  type LintFinding,
  loadLint,
  mergeLayers,
  type PackBudget,
  type PackLayer,
} from "../../packs/index.ts";
import {
  type ContentProblem,
  type Environment,
  expandLayers,
  readEmbeddedContent,
} from "../../workspace/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { renderProblems } from "../render-problems.ts";
import { shownPath } from "../shown-path.ts";
import { createLineFinder, type LineFinder } from "./find-line.ts";
import { contentOptions, loadPacksContent, type PacksContent } from "./load-content.ts";

export const lintCommand: Command = defineCommand({
  options: { ...contentOptions },
  details: `Reports every problem with file and line: keys and values against the schemas; ids in overlaps and profiles that
no pack has; circles of overlaps; packs that share 60 % or more of their runs of 5 words without saying so; markers
without text; headings of level 1; sync:fetch lines that cannot work; packs that no budget can hold. Packs that
ship with plimsoll are known and not reported on. The exit code is 1 if there is an error; warnings leave it 0.`,
  examples: [
    { line: "plimsoll packs lint", meaning: "the packs of this project" },
    { line: "plimsoll packs lint --content .", meaning: "in a repository of packs" },
    {
      line: "plimsoll packs lint --json | jq '.[] | select(.severity == \"error\")'",
      meaning: "for programs",
    },
  ],
  async run(call) {
    const { cwd, env, options } = call;
    const content = await loadPacksContent({ ...call, options: { ...options, profile: "all" } });
    const problems = sorted([
      ...content.problems,
      ...textProblems(content, env),
      ...(await findings(content)),
    ]);
    const shown = problems.map((problem) => ({ ...problem, file: shownPath(problem.file, cwd, env) || "." }));
    return {
      json: shown,
      text: renderProblems(shown, { count: content.packs.length, noun: "pack" }),
      failed: shown.some(({ severity }) => severity === "error"),
    };
  },
});

/** What is odd in the texts of languages that this run does not use. */
function textProblems(content: PacksContent, env: Environment): ContentProblem[] {
  const { layers, originalLine } = expandLayers(content.layers, { env, leftOut: content.leftOut });
  const names = layers.flatMap(({ sources }) => sources.flatMap(({ texts }) => Object.keys(texts)));
  const languages = new Set(names.map((name) => /\.(.+)\.md$/.exec(name)?.[1] ?? "en"));
  return [...languages].flatMap((language) =>
    mergeLayers(layers, { language }).warnings.map(({ directory, file, line, message }) => {
      const path = join(directory, file);
      const severity = "warning" as const;
      return { file: path, line: originalLine(path, line), severity, rule: "text", message };
    }),
  );
}

async function findings(content: PacksContent): Promise<ContentProblem[]> {
  const lines = await createLineFinder(content.directories);
  const { lintPacks } = await loadLint();
  const found = lintPacks({
    packs: content.packs,
    sources: content.layers.flatMap(ownSources),
    profiles: content.profiles.filter(({ id }) => lines.profileFile(id) !== undefined),
    knownIds: readEmbeddedContent().sources.map(({ id }) => id),
    budgets: content.adapters.flatMap(budgetsOf),
  });
  return found.map((finding) => locate(finding, lines));
}

/** Compiled packs have no file that anybody here could change. */
function ownSources({ sources }: PackLayer): PackLayer["sources"] {
  return sources.filter(({ directory }) => isAbsolute(directory));
}

/** The adapter's own budget, and what the tool itself is known to cut. */
function budgetsOf({ id, maxBytes, maxTokens, verbosity = "full", limits }: Adapter): PackBudget[] {
  const budgets: Omit<PackBudget, "adapter" | "verbosity">[] = [];
  if (maxBytes !== undefined && maxBytes > 0) budgets.push({ value: maxBytes, unit: "bytes" });
  else if (maxTokens !== undefined && maxTokens > 0) budgets.push({ value: maxTokens * 4, unit: "bytes" });
  for (const limit of limits.filter(isEnforced)) {
    if (limit.unit === "bytes" || limit.unit === "chars")
      budgets.push({ value: limit.value, unit: limit.unit });
  }
  return budgets.map((budget) => ({ ...budget, adapter: id, verbosity }));
}

function locate({ place, severity, rule, message }: LintFinding, lines: LineFinder): ContentProblem {
  const about = { severity, rule, message };
  if ("line" in place) return { file: join(place.directory, place.file), line: place.line, ...about };
  const file = "profile" in place ? lines.profileFile(place.profile)! : join(place.directory, "pack.yaml");
  return { file, line: lines.lineOf(file, place.key), ...about };
}

/** By place, and each only once: the loader and a rule may say the same. */
function sorted(problems: readonly ContentProblem[]): ContentProblem[] {
  const byText = new Map(problems.map((each) => [`${each.file}\n${each.line}\n${each.message}`, each]));
  const key = ({ file, rule, message }: ContentProblem) => [file, rule, message].join("\n");
  return [...byText.values()].sort((a, b) => {
    if (a.file === b.file && a.line !== b.line) return a.line - b.line;
    return key(a) < key(b) ? -1 : 1;
  });
}
