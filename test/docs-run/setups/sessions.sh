# Eight sessions of an agent, of 300 calls each, in the folder runs.
cp -R "$SESSIONS" runs
