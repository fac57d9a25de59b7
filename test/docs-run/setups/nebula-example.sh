# The page's directory is a copy of examples/nebula.
cp -R "$PLIMSOLL_ROOT/examples/nebula/." .
