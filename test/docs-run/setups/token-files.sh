# Three files of different kinds, from the package itself.
cp "$PLIMSOLL_ROOT/LICENSE" LICENSE
cp "$PLIMSOLL_ROOT/schemas/pack.schema.json" schema.json
cp "$PLIMSOLL_ROOT/content/packs/sql/context.md" sql.md
