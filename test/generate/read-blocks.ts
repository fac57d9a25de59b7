/** What converters need to know of a message's blocks. */
import type { CallBlock, ResultBlock, SessionBlock } from "./session-message.ts";

export function isCall(block: SessionBlock): block is CallBlock {
  return block.type === "tool_use";
}

export function isResult(block: SessionBlock): block is ResultBlock {
  return block.type === "tool_result";
}

/** Results apart from the rest: everywhere but at Anthropic they are messages of their own, and they come first. */
export function splitResults(content: readonly SessionBlock[]): {
  readonly results: readonly ResultBlock[];
  readonly rest: readonly Exclude<SessionBlock, ResultBlock>[];
} {
  return {
    results: content.filter(isResult),
    rest: content.filter((block): block is Exclude<SessionBlock, ResultBlock> => !isResult(block)),
  };
}

/** The text of a result; images, which not every format allows there, leave a word behind. */
export function resultText({ content }: ResultBlock): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
}

export function dataUrl({
  source,
}: {
  readonly source: { readonly media_type: string; readonly data: string };
}): string {
  return `data:${source.media_type};base64,${source.data}`;
}
