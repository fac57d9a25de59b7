/** One thing that is wrong with content, for people and for `packs lint`. */
export interface ContentProblem {
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly severity: Severity;
  readonly rule: string;
  readonly message: string;
}

export type Severity = "error" | "warning";
