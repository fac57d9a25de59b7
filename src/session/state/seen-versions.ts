import { createHash } from "node:crypto";
import type { ToolArguments } from "../tool/budgeted-tool.ts";
import type { SessionRecord } from "./session-record.ts";

/** Which version of a result its pages came from. A continuation by offset asks the tool anew, and meanwhile the files may have changed. */
export interface SeenVersions {
  /** Whether the page before came from another version. */
  isChanged(call: SeenCall): boolean;
  /** Worth the room only for results that have a next page. */
  remember(call: SeenCall): void;
  list(): SessionRecord["versions"];
}

export interface SeenCall {
  readonly tool: string;
  readonly args: ToolArguments;
  readonly offset: number;
  readonly version: string | undefined;
}

/** Results that are being paged at the same time; of older ones a change goes unnoticed. */
const mostVersions = 50;

export function createSeenVersions(initial: SessionRecord["versions"]): SeenVersions {
  const versions = new Map(initial);
  return {
    isChanged({ tool, args, offset, version }) {
      if (version === undefined || offset === 0) return false;
      const before = versions.get(callKey({ tool, args }));
      return before !== undefined && before !== version;
    },
    remember({ tool, args, version }) {
      if (version === undefined) return;
      const key = callKey({ tool, args });
      versions.delete(key);
      versions.set(key, version);
      if (versions.size > mostVersions) versions.delete(versions.keys().next().value!);
    },
    list: () => [...versions],
  };
}

/** The pages of one result differ in these. */
const pageParameters = ["offset", "budget"];

/** The same for all pages of one result. */
export function callKey({ tool, args }: Pick<SeenCall, "tool" | "args">): string {
  const own = Object.entries(args).filter(([name]) => !pageParameters.includes(name));
  const sorted = own.sort(([left], [right]) => (left < right ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([tool, sorted]))
    .digest("base64url")
    .slice(0, 16);
}
