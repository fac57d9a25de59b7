/** The rules of a message format. Each rule takes a parsed request and returns its problems. */
import type { Fields } from "../../text/index.ts";
import type { Role } from "../message-format.ts";

export interface RuleSet {
  readonly always: readonly Check[];
  /** Rules on which sources disagree, or that apply to whole requests only. Checked on demand. */
  readonly strict: readonly Check[];
}

/** One rule, or a few that need the same walk. */
export type Check = (request: CheckedRequest) => Iterable<Problem>;

/** Something in a request that its provider would refuse. */
export interface Problem {
  /** The JSON path of the value, such as `messages[3].content[0].tool_use_id`. */
  readonly path: string;
  /** The name of the rule, in kebab-case. Names are stable, so programs can select by them. */
  readonly rule: string;
  /** What is wrong, and how to correct it if that is known. */
  readonly message: string;
  /** `error` if the provider refuses the request, `warning` if it may cause trouble. */
  readonly severity: "error" | "warning";
}

export interface CheckedRequest {
  readonly turns: readonly CheckedMessage[];
  /** The fields around the messages. Undefined for a bare list, which may end with the assistant. */
  readonly fields: Fields | undefined;
  readonly model: string | undefined;
}

/** One message or item. Its shape is correct unless `isMalformed`; then `message` is empty and its role unknown. */
export interface CheckedMessage {
  readonly path: string;
  readonly role: Role | undefined;
  readonly message: Fields;
  readonly isMalformed: boolean;
}

export function problem(rule: string, path: string, message: string): Problem {
  return { path, rule, message, severity: "error" };
}

/** Shows a value of a request in the message of a problem. */
export function quoteValue(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}

interface BlockPlace {
  readonly turn: CheckedMessage;
  readonly index: number;
}

/** A rule for one block of a content list. */
export type BlockRule = (block: Fields, place: BlockPlace) => Problem | undefined;

/** Applies all rules for blocks in one walk. */
export function eachBlock(rules: readonly BlockRule[]): Check {
  return function* ({ turns }) {
    for (const turn of turns) {
      const blocks = getBlocks(turn);
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

/** Rule `block-role`: refuses a block whose type belongs to other roles. Types that are not listed may be new ones. */
export function allowRoles(roles: ReadonlyMap<unknown, readonly Role[]>): BlockRule {
  return ({ type }, place) => {
    const { role } = place.turn;
    if (role === undefined || roles.get(type)?.includes(role) !== false) return undefined;
    return problem("block-role", `${blockPath(place)}.type`, `${type} is not allowed in a message of role ${role}`);
  };
}

export function blockPath({ turn, index }: BlockPlace): string {
  return `${turn.path}.content[${index}]`;
}

/** Returns the blocks of a content list, and none for plain text. */
export function getBlocks({ message }: CheckedMessage): readonly Fields[] {
  return Array.isArray(message.content) ? message.content : [];
}

export function hasText(text: unknown): boolean {
  return typeof text !== "string" || /\S/.test(text);
}
