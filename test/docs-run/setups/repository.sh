# A git repository with folders in TypeScript, Python and SQL, without a commit.
git init --quiet
mkdir web jobs database
touch web/package.json web/tsconfig.json jobs/pyproject.toml database/schema.sql
