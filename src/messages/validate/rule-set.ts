/** What the rules of a message format are: functions from a request that was read to the problems in it. */
import type { Fields } from "../fields.ts";
import type { Role } from "../message-format.ts";

export interface RuleSet {
  readonly always: readonly Check[];
  /** Where sources disagree, or only the request as a whole is meant: checked on demand. */
  readonly strict: readonly Check[];
}

/** One rule, or a few that need the same walk. */
export type Check = (request: CheckedRequest) => Iterable<Problem>;

export interface Problem {
  /** The JSON path of what is wrong: `messages[3].content[0].tool_use_id`. */
  readonly path: string;
  /** Kebab-case; stable, so that programs can select by it. */
  readonly rule: string;
  readonly message: string;
  readonly severity: "error" | "warning";
}

export interface CheckedRequest {
  readonly turns: readonly Turn[];
  /** What is around the messages. Undefined for a bare list: a history, which may end with the assistant. */
  readonly fields: Fields | undefined;
  readonly model: string | undefined;
}

/** One message, or one item. Its shape is right unless `isMalformed`; then `message` is empty and its role unknown. */
export interface Turn {
  readonly path: string;
  readonly role: Role | undefined;
  readonly message: Fields;
  readonly isMalformed: boolean;
}

export function problem(rule: string, path: string, message: string): Problem {
  return { path, rule, message, severity: "error" };
}

export interface BlockPlace {
  readonly turn: Turn;
  readonly index: number;
}

/** A rule that looks at one block of a content list. */
export type BlockRule = (block: Fields, place: BlockPlace) => Problem | undefined;

/** All rules on blocks in one walk. */
export function eachBlock(rules: readonly BlockRule[]): Check {
  return function* ({ turns }) {
    for (const turn of turns) {
      const blocks = blocksOf(turn);
      const place = { turn, index: 0 };
      for (; place.index < blocks.length; place.index++) {
        for (const rule of rules) {
          const found = rule(blocks[place.index]!, place);
          if (found !== undefined) yield found;
        }
      }
    }
  };
}

export function blockPath({ turn, index }: BlockPlace): string {
  return `${turn.path}.content[${index}]`;
}

/** The blocks of a content list, none for plain text. */
export function blocksOf({ message }: Turn): readonly Fields[] {
  return Array.isArray(message.content) ? message.content : [];
}

export function hasText(text: unknown): boolean {
  return typeof text !== "string" || /\S/.test(text);
}
