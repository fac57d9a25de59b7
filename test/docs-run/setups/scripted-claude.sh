# A folder of logs, and a scripted API that asks for one log after the other.
node "$PLIMSOLL_ROOT/examples/anthropic/scripted-api.mjs" >../port 2>../server.log &
while [ ! -s ../port ]; do sleep 0.02; done
export ANTHROPIC_API_KEY=offline ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat ../port)"
