/** Answers of the Messages API, whole and streamed, for tests. */

export function anthropicMessage(
  usage: object,
  content: readonly object[] = [{ type: "text", text: "Done." }],
): object {
  const stop_reason = content.some((block) => Reflect.get(block, "type") === "tool_use")
    ? "tool_use"
    : "end_turn";
  return { id: "msg_1", type: "message", role: "assistant", model: "m", content, stop_reason, usage };
}

export function anthropicEvents(usage: object): string[] {
  const events = [
    { type: "message_start", message: { ...anthropicMessage(usage), content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Do" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ne." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}
