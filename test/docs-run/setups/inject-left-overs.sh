# Somebody tried Gemini CLI once, and one service has a long AGENTS.md.
plimsoll inject --tool gemini-cli --quiet
mkdir -p services/api
yes -- '- Keep handlers thin: parse, call the domain, answer. The rules of orders live there.' |
  head -n 170 >services/api/AGENTS.md
