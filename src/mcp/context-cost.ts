import type { Counter } from "../tokens/index.ts";

/** What a server says before a conversation, as far as it is known. */
export interface ServedContext {
  readonly instructions?: string | undefined;
  readonly tools: readonly unknown[];
}

/** The tokens that stand in a client's context before any tool is called: the instructions, and of each tool what is told to a model.
 *  How a provider wraps tool definitions is the client's affair, and not counted. */
export function countContext(counter: Counter, { instructions = "", tools }: ServedContext): number {
  const definitions = tools.map((tool) => counter.count(JSON.stringify(definitionOf(tool))));
  return definitions.reduce((sum, tokens) => sum + tokens, counter.count(instructions));
}

/** Titles, annotations and schemas of results are for the client alone. */
function definitionOf(tool: unknown): object {
  const { name, description, inputSchema } = Object(tool) as Record<string, unknown>;
  return { name, description, inputSchema };
}
