/** Answers of the Messages API, whole and streamed, for tests. */

export function anthropicMessage(
  usage: object,
  content: readonly object[] = [{ type: "text", text: "Done." }],
): object {
  const stop_reason = content.some((block) => Reflect.get(block, "type") === "tool_use") ? "tool_use" : "end_turn";
  return { id: "msg_1", type: "message", role: "assistant", model: "m", content, stop_reason, usage };
}

/** Without content, streams a text in two pieces. */
export function anthropicEvents(usage: object, content?: readonly object[]): string[] {
  const message = anthropicMessage(usage, content);
  const events = [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    ...(content?.flatMap(blockEvents) ?? textEvents(0, ["Do", "ne."])),
    {
      type: "message_delta",
      delta: { stop_reason: Reflect.get(message, "stop_reason") },
      usage: { output_tokens: 5 },
    },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

interface Event {
  readonly type: string;
}

function textEvents(index: number, pieces: readonly string[]): Event[] {
  const deltas = pieces.map((text) => ({
    type: "content_block_delta",
    index,
    delta: { type: "text_delta", text },
  }));
  return [
    { type: "content_block_start", index, content_block: { type: "text", text: "" } } as Event,
    ...deltas,
    { type: "content_block_stop", index } as Event,
  ];
}

function blockEvents(block: object, index: number): Event[] {
  const { type, text, input } = block as { type: string; text?: string; input?: object };
  if (type === "text") return textEvents(index, [text ?? ""]);
  const delta = { type: "input_json_delta", partial_json: JSON.stringify(input) };
  return [
    { type: "content_block_start", index, content_block: { ...block, input: {} } } as Event,
    { type: "content_block_delta", index, delta } as Event,
    { type: "content_block_stop", index } as Event,
  ];
}
