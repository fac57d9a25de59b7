# A transcript of Claude Code with a sub-agent, and the JSON that the client gives to a status line.
projects="$HOME/.claude/projects/-home-me-shop"
mkdir -p "$projects/s1/subagents"
node - "$projects" <<'END'
const { writeFileSync } = require("node:fs");
const [, , projects] = process.argv;
const line = (id, usage) => `${JSON.stringify({
  type: "assistant",
  sessionId: "s1",
  requestId: `req_${id}`,
  timestamp: new Date().toISOString(),
  message: { id, model: "claude-sonnet-4-5", usage },
})}\n`;
const cached = { input_tokens: 1_000, cache_read_input_tokens: 90_000, cache_creation_input_tokens: 9_000, output_tokens: 0 };
writeFileSync(`${projects}/s1.jsonl`, line("a", cached));
writeFileSync(`${projects}/s1/subagents/agent-x.jsonl`, line("b", { input_tokens: 99_000, output_tokens: 0 }));
writeFileSync("status.json", JSON.stringify({
  session_id: "s1",
  transcript_path: `${projects}/s1.jsonl`,
  context_window: { total_input_tokens: 28_320, context_window_size: 200_000 },
  prompt_cache: { misses: 2, last_miss_at: 1, last_miss_cause: { causes: ["tools_changed"] } },
}));
END
