# The AGENTS.md of the service alone is longer than Codex reads.
yes -- '- Keep handlers thin: parse, call the domain, answer. The rules of orders live there.' |
  head -n 400 >services/api/AGENTS.md
