/** Ids of calls, each used once in a history: agents that number the calls of a turn use the same ids in the next one. */
import type { Fields } from "../fields.ts";
import type { CallName, MessageFormat, Part } from "../message-format.ts";

export interface NamedCall extends CallName {
  /** As recorded: the results carry it. */
  readonly recordedId: string;
}

export interface CallNames {
  /** The messages of a turn with ids that no earlier call has, and its calls in order. */
  unique(turn: readonly Fields[]): { messages: readonly Fields[]; calls: readonly NamedCall[] };
}

export function createCallNames(format: MessageFormat): CallNames {
  const used = new Set<string>();
  const uses = new Map<string, number>();
  // Anthropic takes letters, digits, - and _ in an id.
  const nameOf = (recordedId: string): string => {
    let callId = recordedId;
    let use = uses.get(recordedId) ?? 1;
    while (used.has(callId)) callId = `${recordedId}_${++use}`;
    uses.set(recordedId, use);
    used.add(callId);
    return callId;
  };
  return {
    unique(turn) {
      const calls: NamedCall[] = [];
      const messages = turn.map((message) => {
        let named = message;
        for (const part of format.read(message, "message").parts) {
          if (part.kind !== "tool_call" || part.callId === undefined) continue;
          const callId = nameOf(part.callId);
          const { type } = Object(part.value) as Fields;
          calls.push({ recordedId: part.callId, callId, toolName: part.toolName, type });
          named = renameCall(named, part, callId);
        }
        return named;
      });
      return { messages, calls };
    },
  };
}

/** The message with another id on that part, a call or a result of its own; the same message where it has that id. */
export function renameCall(message: Fields, { value, callId }: Part, newId: string): Fields {
  if (callId === newId) return message;
  const renamed = (block: Fields): Fields => {
    const ids = idFields.filter((name) => block[name] === callId).map((name) => [name, newId]);
    return { ...block, ...Object.fromEntries(ids) };
  };
  // Where the message holds one call or result and nothing else, it is the part.
  if (value === message || typeof value !== "object") return renamed(message);
  const lists = Object.entries(message).filter(([, field]) => Array.isArray(field) && field.includes(value));
  const changed = lists.map(([name, list]) => [
    name,
    (list as readonly unknown[]).map((block) => (block === value ? renamed(value as Fields) : block)),
  ]);
  return { ...message, ...Object.fromEntries(changed) };
}

const idFields = ["id", "tool_use_id", "tool_call_id", "call_id", "toolCallId"];
