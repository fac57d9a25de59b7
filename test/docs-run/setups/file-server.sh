# A log of 4,000 lines, and a server that reads it: @modelcontextprotocol/server-filesystem, as npm would install it.
mkdir -p logs ../../../bin
seq 0 3999 | awk '{ printf "2026-11-15T10:%02d:%02dZ GET /parts/%d 200 %dms\n", $1 / 60 % 60, $1 % 60, $1, $1 % 50 }' >logs/access.log
printf '#!/bin/sh\nexec node "%s" "$@"\n' "$PLIMSOLL_ROOT/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js" \
  >../../../bin/mcp-server-filesystem
chmod +x ../../../bin/mcp-server-filesystem
PATH="$(cd ../../../bin && pwd):$PATH"
