/** A regular expression with a time limit. Node's own engine backtracks: `(a+)+$` on forty letters takes longer than a person lives,
 *  and nothing else runs meanwhile. In a script of its own it can be stopped; a worker would cost more to start than most searches. */
import { createContext, Script } from "node:vm";
import type { ToolFailure } from "../../session/index.ts";
import { cutText } from "../../text/index.ts";
import { failure } from "../frame/failure.ts";

export interface LineMatcher {
  /** For the lines of each text those that match, from 0, and where in each the match begins. Undefined when it took too long. */
  find(texts: readonly Lines[]): readonly (readonly FoundLine[])[] | undefined;
}

export type Lines = readonly string[];

export type FoundLine = readonly [line: number, at: number];

export interface MatcherOptions {
  readonly isRegex: boolean;
  readonly caseSensitive: boolean;
  /** For one call. Starting a script with a limit costs as much as reading a file: give it several texts. */
  readonly timeoutMs: number;
}

export function createLineMatcher(
  pattern: string,
  { isRegex, caseSensitive, timeoutMs }: MatcherOptions,
): LineMatcher | ToolFailure {
  // ripgrep's way to say so; Node's engine knows none at the start of a pattern.
  const [, inline = "", plain = pattern] = (isRegex && /^\(\?([ims]+)\)(.*)$/s.exec(pattern)) || [];
  const source = isRegex ? plain : pattern.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const flags = [...new Set(`${inline}${caseSensitive ? "" : "i"}`)].join("");
  const expression = isRegex ? compile(source, flags) : new RegExp(source, flags);
  if (typeof expression === "string")
    return failure("invalid_pattern", expression, "Check the regular expression.");
  const context = createContext({ expression, texts: [] as readonly Lines[] });
  return {
    find: (texts) => {
      context.texts = texts;
      try {
        return script.runInContext(context, { timeout: timeoutMs });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
        throw error;
      } finally {
        context.texts = [];
      }
    },
  };
}

const script = new Script(`
  texts.map((lines) => {
    const found = [];
    for (let line = 0; line < lines.length; line++) {
      const at = lines[line].search(expression);
      if (at >= 0) found.push([line, at]);
    }
    return found;
  });
`);

/** With Unicode where the pattern allows it: there `\\-` is an error, and ripgrep takes it. */
function compile(source: string, flags: string): RegExp | string {
  try {
    return new RegExp(source, `${flags}u`);
  } catch {
    // Below, without.
  }
  try {
    return new RegExp(source, flags);
  } catch (error) {
    return `The pattern cannot be searched for: ${cutText((error as Error).message, 300).text}.`;
  }
}
