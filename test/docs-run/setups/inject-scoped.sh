# A repository without blocks, with a folder for one service.
rm -rf .plimsoll AGENTS.md CLAUDE.md GEMINI.md services
mkdir -p .git/objects .git/refs services/api .plimsoll
[ -f .git/HEAD ] || echo "ref: refs/heads/main" > .git/HEAD
printf 'packs: { exclude: [security, git, node, typescript, python, sql] }\n' > .plimsoll/config.yaml
