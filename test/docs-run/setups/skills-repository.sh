# A git repository with two skills beside the project, which has a pack of its own.
rm -rf .plimsoll AGENTS.md CLAUDE.md .claude .opencode
mkdir -p .git/objects .git/refs ../skills-repo/skills/deploy ../skills-repo/skills/review
[ -f .git/HEAD ] || echo "ref: refs/heads/main" > .git/HEAD
(
  cd ../skills-repo
  git init --quiet
  for name in deploy review; do
    printf -- '---\nname: %s\ndescription: How we %s.\n---\n\nAsk first.\n' $name $name >skills/$name/SKILL.md
  done
  git add . && git commit --quiet -m "Add two skills"
)
