/** What a scan found in a project: all that a snapshot is rendered from. */
export interface ProjectScan {
  /** What its manifests say, in the order in which it is shown: `Module`, `Language`, … */
  readonly facts: readonly { readonly name: string; readonly value: string }[];
  /** Every file once, relative, with slashes, in any order. A path that ends with a slash is a folder of which no more is known:
   *  another repository, or one that cannot be read. */
  readonly paths: readonly string[];
  /** What people wrote for those who work here, the most important first. */
  readonly conventions: readonly ConventionsFile[];
  /** What is missing above, and why. Not rendered: a snapshot does not depend on who took it. */
  readonly problems: readonly ScanProblem[];
}

export interface ConventionsFile {
  readonly path: string;
  readonly text: string;
}

export interface ScanProblem {
  /** Relative; "." for the project itself. */
  readonly path: string;
  readonly reason: string;
}
