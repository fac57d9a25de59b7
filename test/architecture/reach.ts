/** What is loaded together with a file, and what must not be: start-up costs what its static imports cost. */
import { isPure, resolveImport } from "./layers.ts";
import { packageOf } from "./packages.ts";
import { isDriver } from "./purity.ts";
import type { Project, Violation } from "./violation.ts";

/** Each thing that `entry` loads, with the chain of files that leads there. Packages stand by their name. */
export function staticReach(entry: string, project: Project): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>([[entry, [entry]]]);
  for (const [path, chain] of chains) {
    for (const { specifier = "", kind } of project.sources.get(path)?.imports ?? []) {
      if (kind !== "static") continue;
      const target = specifier.startsWith(".") ? resolveImport(path, specifier) : packageOf(specifier);
      if (!chains.has(target)) chains.set(target, [...chain, target]);
    }
  }
  return chains;
}

/** Loaded by import() alone, so that no one pays for what they do not use. */
const lazyTargets: readonly { matches(target: string): boolean; what: string }[] = [
  { matches: isDriver, what: "a store driver" },
  { matches: (target) => /^(libsql|pg)$/.test(target), what: "a database" },
  { matches: (target) => target === "gpt-tokenizer", what: "a tokenizer" },
  {
    matches: (target) =>
      /^src\/core\/tokens\/(exact|o200k|cl100k|estimator|features|scan-words|pretoken|.*\.data)\.ts$/.test(target),
    what: "a counter's tables",
  },
  { matches: (target) => /^src\/cli\/commands\/(?!index\.ts)/.test(target), what: "a command" },
];

/** Every door of the pure part, and the command itself, loads none of the lazy things. */
export function checkReach(project: Project): Violation[] {
  return [...project.sources.keys()].filter(isLight).flatMap((entry) =>
    [...staticReach(entry, project)].flatMap(([target, chain]) => {
      const lazy = lazyKind(target);
      // What a lazy thing loads in turn is no second mistake.
      if (lazy === undefined || chain.slice(0, -1).some(lazyKind)) return [];
      const rule = `is ${lazy}, loaded together with ${entry}. Load it with import() where it is used.`;
      return { file: entry, line: 1, subject: chain.slice(1).join(" → "), rule };
    }),
  );
}

function lazyKind(target: string): string | undefined {
  return lazyTargets.find((each) => each.matches(target))?.what;
}

function isLight(path: string): boolean {
  const isPureDoor = isPure(path) && /^src\/[\w-]+\/[\w-]+\/index\.ts$/.test(path);
  const isPublic = /^src\/public\/(?!store-)/.test(path);
  return isPureDoor || isPublic || path === "src/cli/main.ts" || path === "src/cli/run-cli.ts";
}
