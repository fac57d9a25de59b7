# The example of a company's packs, beside the project.
cp -r "$PLIMSOLL_ROOT/examples/company" ../plimsoll-packs
# The project has folders in TypeScript, Python and SQL.
mkdir web jobs database
touch web/package.json web/tsconfig.json jobs/pyproject.toml database/schema.sql
