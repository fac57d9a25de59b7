# A company's packs in a git repository beside the project, with a tag.
mkdir -p ../packs-repo/packs/house
(
  cd ../packs-repo
  git init --quiet
  printf 'id: house\nname: House rules\nweight: 95\n' >packs/house/pack.yaml
  printf '## House rules\n\n- Every service has an owner in OWNERS.\n' >packs/house/context.md
  git add . && git commit --quiet -m "Add the house rules" && git tag v12
)
