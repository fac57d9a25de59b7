# A session of an agent with 300 calls, as run-1.jsonl in the page's directory.
cp "$SESSIONS/run-1.jsonl" .
