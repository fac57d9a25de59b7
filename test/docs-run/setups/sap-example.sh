# The example's content directory, at the path that the commands name.
mkdir -p examples && cp -r "$PLIMSOLL_ROOT/examples/sap" examples/sap
