# A project with instruction files of three tools that repeat each other.
mkdir -p ~/old-shop/.cursor/rules
cd ~/old-shop
cat >AGENTS.md <<'EOF'
# Shop

## Commands

- `npm test` runs all tests. Run it before you commit.
- `npm run dev` starts the shop on port 3000.

## Style

- Money is an integer number of cents.
EOF
cat >CLAUDE.md <<'EOF'
# Shop

## Style

* Money is an integer
  number of cents.

## Billing

* Ask before you touch `billing/`.
EOF
cat >.cursor/rules/react.mdc <<'EOF'
---
description: How we write components
globs: src/**/*.tsx
alwaysApply: false
---
- A component is a function with named props.
EOF
