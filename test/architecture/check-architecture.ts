import { checkForm } from "./form.ts";
import { checkLayers } from "./layers.ts";
import { checkPackages } from "./packages.ts";
import { checkPurity } from "./purity.ts";
import { checkReach } from "./reach.ts";
import { checkReads } from "./reads.ts";
import { readSource } from "./source.ts";
import { describeViolation, type Project } from "./violation.ts";
import { checkWrites } from "./writes.ts";

export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Files by path, relative to the root, with their text. */
export function createProject(files: Readonly<Record<string, string>>, manifest: Manifest): Project {
  const { dependencies, peerDependencies, optionalDependencies } = manifest;
  return {
    name: manifest.name,
    sources: new Map(Object.entries(files).map(([path, text]) => [path, readSource(path, text)])),
    doors: new Set(
      Object.values(manifest.exports).flatMap((target) => sourceOf(Object(target).default ?? target) ?? []),
    ),
    dependencies: new Set(Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })),
  };
}

/** Every broken rule of the architecture, one line each: file → import → rule. */
export function checkArchitecture(project: Project): string[] {
  const violations = [...project.sources.values()].flatMap((source) => [
    ...checkLayers(source, project),
    ...checkPackages(source, project),
    ...checkPurity(source),
    ...checkReads(source),
    ...checkForm(source),
    ...checkWrites(source),
  ]);
  return [...violations, ...checkReach(project)].map(describeViolation);
}

/** The source of a built file: ./dist/core/store/index.js → src/core/store/index.ts. */
function sourceOf(target: string): string | undefined {
  const built = /^\.\/dist\/(.+)\.js$/.exec(target);
  return built === null ? undefined : `src/${built[1]}.ts`;
}
