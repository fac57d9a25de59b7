/** What generated sessions consist of: Anthropic's messages, the blocks that agents send. */
export interface SessionMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: readonly SessionBlock[];
}

export type SessionBlock = TextBlock | ImageBlock | ThinkingBlock | SealedBlock | CallBlock | ResultBlock;

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

export interface ImageBlock {
  readonly type: "image";
  readonly source: { readonly type: "base64"; readonly media_type: string; readonly data: string };
}

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
}

export interface SealedBlock {
  readonly type: "redacted_thinking";
  readonly data: string;
}

export interface CallBlock {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ResultBlock {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string | readonly (TextBlock | ImageBlock)[];
  readonly is_error?: true;
}
