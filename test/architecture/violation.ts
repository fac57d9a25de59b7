import type { Source } from "./source.ts";

/** One broken rule, for one reader: what in which file, and which rule. */
export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly subject: string;
  readonly rule: string;
}

/** Everything the rules look at. Paths are relative to the root, such as src/core/text/index.ts. */
export interface Project {
  readonly name: string;
  readonly sources: ReadonlyMap<string, Source>;
  /** The source files behind package.json's exports. */
  readonly doors: ReadonlySet<string>;
  /** Packages that an installed plimsoll has. */
  readonly dependencies: ReadonlySet<string>;
}

export function describeViolation({ file, line, subject, rule }: Violation): string {
  return `${file}:${line} → ${subject} → ${rule}`;
}
