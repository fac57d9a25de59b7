/** Answers of OpenAI's chat completions and responses, whole and streamed, for tests. */
import type { Reply } from "./scripted-server.contract.ts";

export function chat(usage: object): object {
  const choice = { index: 0, finish_reason: "stop", message: { role: "assistant", content: "Done." } };
  return { id: "c1", object: "chat.completion", created: 1, model: "m", choices: [choice], usage };
}

export function streamedChat(usage: object): Reply {
  const chunk = { id: "c1", object: "chat.completion.chunk", created: 1, model: "m" };
  const chunks = [
    { ...chunk, choices: [{ index: 0, delta: { role: "assistant", content: "Do" }, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: { content: "ne." }, finish_reason: "stop" }] },
    { ...chunk, choices: [], usage },
  ];
  return { events: [...chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`), "data: [DONE]\n\n"] };
}

export function response(usage: object | null): object {
  const content = [{ type: "output_text", text: "Done.", annotations: [] }];
  const output = [{ id: "m1", type: "message", role: "assistant", status: "completed", content }];
  return { id: "r1", object: "response", created_at: 1, status: "completed", model: "m", output, usage };
}

export function streamedResponse(usage: object): Reply {
  const events = [
    { type: "response.created", sequence_number: 0, response: response(null) },
    { type: "response.completed", sequence_number: 1, response: response(usage) },
  ];
  return { events: events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`) };
}
