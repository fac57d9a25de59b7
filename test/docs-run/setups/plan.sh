# The plan of examples/nebula in the folder plan, in an empty git project.
git init --quiet
cp -R "$PLIMSOLL_ROOT/examples/nebula" plan
rm plan/README.md
