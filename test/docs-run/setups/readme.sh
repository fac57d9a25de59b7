# A TypeScript project that has instruction files, a session, its first 200 calls, and the example of a plan.
printf '# Shop\n\nAsk before you touch `billing/`.\n' >CLAUDE.md
printf '# Shop\n' >AGENTS.md
mkdir .cursor
printf '{}\n' | tee package.json >tsconfig.json
cp "$SESSIONS/run-1.jsonl" .
head -n 399 run-1.jsonl >history.jsonl
cp -r "$PLIMSOLL_ROOT/examples/nebula" plan
