# The repository's examples, as a clone has them.
cp -R "$PLIMSOLL_ROOT/examples" examples
mkdir -p scripts && cp -R "$PLIMSOLL_ROOT/scripts/provider" scripts/provider
