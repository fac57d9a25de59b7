# A project in git whose last commit changed 40 files, and the official MCP client.
git init --quiet
mkdir -p src ../../../node_modules
ln -s "$PLIMSOLL_ROOT/node_modules/@modelcontextprotocol" ../../../node_modules/
shelves() {
  for shelf in $(seq 10 49); do
    for line in $(seq 40); do echo "export const price$line = $((shelf * line * $1 % 997));"; done >"src/shelf-$shelf.ts"
  done
  git add --all
  git commit --quiet --message "$2"
}
shelves 7 "Set the prices"
shelves 11 "Raise the prices"
# Tools show these times, and their digits count. Only after the commits: git would take an equal time for an equal file.
touch -d 2026-01-05T12:00:00Z src/*
