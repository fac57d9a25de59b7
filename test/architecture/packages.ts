/** Which packages a file may use, and which of them only at the moment they are needed. */
import { isBuiltin } from "node:module";
import { isPure } from "./layers.ts";
import { isDriver } from "./purity.ts";
import type { Import, Source } from "./source.ts";
import type { Project, Violation } from "./violation.ts";

interface PackageRule {
  /** Loaded by import(), never together with the file. */
  readonly lazy: boolean;
  allows(path: string): boolean;
}

/** All that pure code may use. */
const purePackages: ReadonlyMap<string, PackageRule> = new Map([
  // The build replaces these files by their values, and src/core/tokens/exact.ts loads them with import().
  ["gpt-tokenizer", { lazy: false, allows: (path) => /^src\/core\/tokens\/(o200k|cl100k)\.ts$/.test(path) }],
  ["libsql", { lazy: true, allows: isDriver }],
  ["pg", { lazy: true, allows: isDriver }],
  // Only fetched pages need it: src/core/text/index.ts loads the file that uses it with import().
  ["parse5", { lazy: false, allows: (path: string) => path === "src/rules/sync/convert-html.ts" }],
  ["zod", { lazy: false, allows: () => true }],
  ["yaml", { lazy: false, allows: () => true }],
  ["smol-toml", { lazy: false, allows: () => true }],
]);

export function checkPackages(source: Source, project: Project): Violation[] {
  if (source.isTest) return [];
  return source.imports.flatMap((each) => {
    const { specifier, line } = each;
    if (specifier === undefined || specifier.startsWith(".")) return [];
    const rule = isBuiltin(specifier)
      ? builtinProblem(source.path, specifier)
      : (packageProblem(source.path, each) ?? missingProblem(specifier, project));
    return rule === undefined ? [] : { file: source.path, line, subject: specifier, rule };
  });
}

function builtinProblem(path: string, specifier: string): string | undefined {
  if (!isPure(path) || path === "src/core/crypto.ts") return undefined;
  if (specifier === "node:crypto") return "is missing in Workers and browsers. Import from src/core/crypto.ts.";
  return "is not pure, and this file is. Let the caller pass in what it gives.";
}

function packageProblem(path: string, { specifier = "", kind }: Import): string | undefined {
  if (!isPure(path) && !isDriver(path)) return undefined;
  const name = packageOf(specifier);
  const rule = purePackages.get(name);
  if (rule === undefined) return `is no package for pure code: ${listed()} are.`;
  if (!rule.allows(path)) return `does not belong here: ${name} has its own files.`;
  return rule.lazy && kind === "static" ? "is heavy. Load it with import() where it is used." : undefined;
}

function missingProblem(specifier: string, project: Project): string | undefined {
  if (project.dependencies.has(packageOf(specifier))) return undefined;
  return "is neither in package.json nor bundled by scripts/third-party.mjs, so an installed plimsoll would not find it.";
}

/** `@scope/name/file` → `@scope/name`. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function listed(): string {
  return [...purePackages.keys()].join(", ");
}
