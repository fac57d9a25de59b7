/** Repositories with instruction files as people keep them in public: copies for each tool, rules for some files, files of
 *  folders, imports, links, and texts for one tool only. */

export interface MoveRepository {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  /** Maps each link to its target. */
  readonly links?: Readonly<Record<string, string>>;
}

const commands = `## Commands

- \`pnpm install\` sets up the workspace.
- \`pnpm test --filter <package>\` runs the tests of one package.
- \`pnpm build\` must pass before a pull request.
`;

const shop = `${commands}
## Architecture

The shop is a monorepo. \`packages/core\` holds the domain and imports nothing from the other packages.
\`packages/api\` is a Fastify server, and \`packages/web\` is a React application that talks to it.

\`\`\`
packages/
  core/   domain, no I/O
  api/    HTTP, database
  web/    React
\`\`\`

## Conventions

1. Prices are integers in cents. Never use floats for money.
2. Dates are ISO 8601 in UTC.
   Convert them in the component that shows them.
3. Errors carry a code from \`packages/core/errors.ts\`.

Commit messages follow Conventional Commits.
`;

const claudeTop = `# CLAUDE.md

This file provides guidance to Claude Code (claude.ai/code) when working with code in this repository.

`;

const python = `# Ledger

Ledger is a Django application that books payments.

## Setup

Run \`uv sync\`, then \`uv run manage.py migrate\`. Python 3.13 is required.

## Tests

Run \`uv run pytest -q\`. Tests that need PostgreSQL are marked with \`@pytest.mark.db\` and start a container.

## Style

- Ruff formats the code. Do not format by hand.
- Type hints on every public function.
- No \`print\`: use \`structlog\`.
`;

const backend = `Use constructor injection, never field injection.

Controllers return \`ResponseEntity\` and contain no business logic.

Write migrations with Flyway in \`src/main/resources/db/migration\`. Never edit a migration that was released.

Run \`./gradlew check\` before you commit.
`;

export const moveRepositories: readonly MoveRepository[] = [
  {
    name: "AGENTS.md and CLAUDE.md with the same text",
    files: {
      "AGENTS.md": `# AGENTS.md\n\n${shop}`,
      "CLAUDE.md": `${claudeTop}${shop}`,
      "package.json": "{}\n",
    },
  },
  {
    name: "rules for Cursor with globs, and copilot-instructions.md",
    files: {
      ".cursor/rules/general.mdc": `---\ndescription: General rules\nglobs:\nalwaysApply: true\n---\n\n# General\n\n${backend}`,
      ".cursor/rules/tests.mdc": `---\ndescription: Tests\nglobs: src/test/**/*.java\nalwaysApply: false\n---\n\nUse JUnit 5 and AssertJ.\n\nName tests after the behaviour: \`rejectsNegativeAmounts\`.\n`,
      ".cursor/rules/release.mdc": `---\ndescription: How to release\nalwaysApply: false\n---\n\nTag the commit, then run \`./gradlew publish\`.\n`,
      ".github/copilot-instructions.md": `# Copilot instructions\n\n${backend}\nPrefer \`record\` over Lombok in suggestions.\n`,
      "build.gradle": "",
    },
  },
  {
    name: "an AGENTS.md in folders, and a CLAUDE.md that imports",
    files: {
      "AGENTS.md": `# Shop\n\n${shop}`,
      "CLAUDE.md": "@AGENTS.md\n",
      "packages/api/AGENTS.md": `# API\n\nValidate every input with zod.\n\n${commands}\n## Routes\n\nOne file a route, in \`src/routes\`.\n`,
      "packages/web/AGENTS.md": `# Web\n\nComponents are functions. State lives in \`src/state\`.\n`,
      "packages/api/package.json": "{}\n",
    },
  },
  {
    name: "a GEMINI.md that imports AGENTS.md, and a CLAUDE.md that links to it",
    files: {
      "AGENTS.md": python,
      "GEMINI.md": "@AGENTS.md\n\n## Gemini\n\nAnswer in at most ten lines. Do not run `manage.py shell`.\n",
      "pyproject.toml": "",
    },
    links: { "CLAUDE.md": "AGENTS.md" },
  },
  {
    name: "copies for Windsurf and Cline, and text for one tool",
    files: {
      "AGENTS.md": `# Payments\n\n${backend}`,
      "CLAUDE.md": `${claudeTop}${backend}\n## Subagents\n\nUse the \`reviewer\` subagent before a commit. Use plan mode for migrations.\n`,
      ".windsurfrules": `${backend}\nCascade: ask before you run Docker.\n`,
      ".clinerules/backend.md": `# Project rules\n\n${backend}`,
      ".clinerules/memory.md": "# Memory bank\n\nRead `memory-bank/` at the start of every task.\n",
      "build.gradle": "",
    },
  },
];
