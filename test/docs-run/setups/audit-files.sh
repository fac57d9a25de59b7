# A repository whose CLAUDE.md imports a long AGENTS.md. One service has an AGENTS.md of its own.
git init --quiet
mkdir -p services/api
echo '@AGENTS.md' >CLAUDE.md
yes -- '- Orders are never deleted, only cancelled; ask.' | head -n 600 >AGENTS.md
yes -- '- Keep handlers thin: parse, call the domain, answer. The rules of orders live there.' |
  head -n 160 >services/api/AGENTS.md
