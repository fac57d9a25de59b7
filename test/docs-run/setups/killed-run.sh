# A run of the plan that was killed while the agent of the phase contract was working. That agent ends a few seconds later.
cat >slow-agent.sh <<'END'
#!/bin/sh
[ "$PLIMSOLL_PHASE" = contract ] && sleep 4
exec node plan/agent.mjs
END
chmod +x slow-agent.sh
plimsoll nebula apply plan --agent-command ./slow-agent.sh --yes --max-workers 1 &
killed=$!
until plimsoll nebula status plan | grep -q 'contract  *running'; do sleep 0.1; done
kill -9 $killed
wait $killed || true
