/** The usual loop around a model with one tool. It knows nothing of a budget: that is the client's business. */
const tools = [
  {
    name: "read_file",
    description: "Reads a file of the project.",
    input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
];

export async function runAgent(client, model) {
  const messages = [{ role: "user", content: "Where is the bug?" }];
  for (;;) {
    const answer = await client.messages.create({
      model,
      max_tokens: 1_000,
      system: "You look for bugs.",
      tools,
      messages,
      cache_control: { type: "ephemeral" },
    });
    messages.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) return answer.content.find(({ type }) => type === "text").text;
    messages.push({ role: "user", content: calls.map(runTool) });
  }
}

function runTool({ id, input }) {
  const content = `// ${input.path}\n${"export const answer = 42;\n".repeat(120)}`;
  return { type: "tool_result", tool_use_id: id, content };
}
