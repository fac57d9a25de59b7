# Sessions of Claude Code and Codex in the places where these programs keep them.
mkdir -p "$HOME/.claude/projects/shop" "$HOME/.codex/sessions/2026/10/05"
cp "$BILLED"/[123].jsonl "$HOME/.claude/projects/shop"
cp "$BILLED/4.jsonl" "$HOME/.codex/sessions/2026/10/05/rollout-4.jsonl"
