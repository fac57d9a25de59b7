/** What others build on, frozen as literals: a change here is a change for users, and belongs in CHANGELOG.md.
 *  The help of every command is frozen in e2e/golden/. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest: { exports: Record<string, { default: string }> } = JSON.parse(
  readFileSync(`${root}package.json`, "utf8"),
);

const doors: Readonly<Record<string, Surface>> = {
  ".": {
    values: [
      "ContextError",
      "countMessages",
      "counterNames",
      "createCounter",
      "createMemoryStore",
      "createTrimmer",
      "errorCodes",
      "validateRequest",
    ],
    types: ["Counter", "CounterName", "ErrorCode", "Problem", "Reduction", "Store", "Trimmer", "TrimmerOptions"],
  },
  "./tokens": {
    values: ["counterNames", "createCalibrator", "createCounter"],
    types: ["Calibrator", "Counter", "CounterName"],
  },
  "./messages": {
    values: ["countMessages", "countTools", "formatNames", "validateRequest"],
    types: ["CountOptions", "FormatName", "Problem", "ValidateOptions"],
  },
  "./history": {
    values: [
      "createContextManager",
      "createTrimmer",
      "dedupToolResults",
      "estimateTokens",
      "estimateToolOverhead",
      "forgetHistory",
      "listHistories",
      "mergeConsecutiveSameRole",
      "policyNames",
      "reduceContext",
      "reduceContextWithBudget",
      "removeXmlTag",
    ],
    types: [
      "Checkpoint",
      "ContextBudget",
      "ContextManager",
      "ContextManagerOptions",
      "Overflow",
      "PolicyName",
      "Pressure",
      "Recalled",
      "ReducedContext",
      "Reduction",
      "RemovedContent",
      "RfcMessage",
      "TrimRequest",
      "TrimStats",
      "Trimmer",
      "TrimmerOptions",
    ],
  },
  "./billing": {
    values: ["billableRequest", "breakEvenCalls", "costOfUsage", "createCacheSimulator", "economicBatch", "priceOf"],
    types: ["Bill", "BillableRequest", "CacheSimulator", "CacheSimulatorOptions", "Prices", "Provider", "UsageCost"],
  },
  "./compose": {
    values: ["addToFabric", "createPromptComposer", "emptyFabric", "renderFabric", "renderSnapshot", "withTask"],
    types: [
      "ComposedContext",
      "ContextLayers",
      "Fabric",
      "FabricReport",
      "ProjectScan",
      "PromptComposer",
      "PromptComposerOptions",
      "Snapshot",
    ],
  },
  "./session": {
    values: ["createSession", "deleteSession", "listSessions", "readSessionReport"],
    types: [
      "BudgetedTool",
      "CallOptions",
      "Compressor",
      "Delivered",
      "Envelope",
      "JsonSchema",
      "Session",
      "SessionOptions",
      "SessionReport",
      "SessionStatus",
      "ToolArguments",
      "ToolResult",
    ],
  },
  "./tools": { values: ["createTools"], types: ["ToolsOptions"] },
  "./store": {
    values: ["createMemoryStore"],
    types: ["ListOptions", "ReadOptions", "Store", "StoreRecord", "StreamEntry"],
  },
  "./store/sqlite": { values: ["openSqliteStore"], types: ["SqliteStoreOptions"] },
  "./store/postgres": { values: ["openPostgresStore"], types: ["PostgresStoreOptions"] },
  "./agent": {
    values: [
      "agentPresets",
      "createBudgetHook",
      "createContextHook",
      "createDefaultHooks",
      "createHookRegistry",
      "scanProject",
      "startAgent",
    ],
    types: [
      "AgentEnd",
      "AgentLimits",
      "AgentPreset",
      "AgentRequest",
      "AgentRun",
      "AgentState",
      "ContextHookOptions",
      "Hook",
      "HookRegistry",
      "LifecycleEvent",
    ],
  },
  "./nebula": {
    values: ["applyNebula", "fabricOf", "loadNebula", "nebulaKey", "openNebulaRecord", "planApply", "readAnswer"],
    types: ["ApplyEvent", "ApplyOptions", "ApplyReport", "LoadedNebula", "Nebula", "NebulaRecord", "Phase"],
  },
  "./ai-sdk": {
    values: ["contextBudgetMiddleware", "contextBudgetPrepareStep", "recallTool"],
    types: ["CallEvent", "CallSummary", "MiddlewareOptions", "PrepareStepOptions", "RecallTool", "TrimEvent"],
  },
  "./fetch": {
    values: ["budgetedFetch", "recallTool"],
    types: ["BudgetedFetchOptions", "CallEvent", "CallSummary", "RecallTool", "TrimEvent"],
  },
  "./intake": {
    values: ["createIntake"],
    types: ["AdmittedResult", "IncomingResult", "Intake", "IntakeOptions"],
  },
  "./anthropic": {
    values: ["recallTool", "withContextBudget"],
    types: ["AnthropicOptions", "CallEvent", "CallSummary", "RecallTool", "TrimEvent"],
  },
  "./openai": {
    values: ["recallTool", "withContextBudget"],
    types: ["CallEvent", "CallSummary", "OpenAiOptions", "RecallTool", "TrimEvent"],
  },
};

interface Surface {
  values: string[];
  types: string[];
}

test("package.json exports these doors, the schemas and itself", () => {
  expect(Object.keys(manifest.exports)).toEqual([...Object.keys(doors), "./schemas/*", "./package.json"]);
});

test.each(Object.entries(doors))("the door %s gives these names", async (door, expected) => {
  const target = `${root}${manifest.exports[door]?.default}`;
  const values = Object.keys(await import(/* @vite-ignore */ target)).sort();
  const types = declaredNames(target.replace(/\.js$/, ".d.ts")).filter((name) => !values.includes(name));
  expect({ values, types }).toEqual(expected);
});

test("errors have these codes", async () => {
  const { errorCodes } = await import(/* @vite-ignore */ `${root}dist/core/errors.js`);
  expect(errorCodes).toEqual([
    "usage",
    "unknown_counter",
    "invalid_argument",
    "invalid_config",
    "untrusted",
    "invalid_content",
    "invalid_message",
    "context_overflow",
    "unreadable_input",
    "refused_target",
    "write_failed",
    "store_unavailable",
    "store_corrupt",
    "store_newer",
    "store_conflict",
    "hook_failed",
  ]);
});

test("a configuration has these keys", () => {
  const schema: Schema = JSON.parse(readFileSync(`${root}schemas/config.schema.json`, "utf8"));
  expect(keysOf(schema)).toEqual([
    "counter",
    "model",
    "title",
    "profile",
    "language",
    "tools",
    "own_files",
    "packs.include",
    "packs.exclude",
    "packs.built_in",
    "verbosity",
    "budgets",
    "on_overflow",
    "on_drop",
    "company.source",
    "company.revision",
    "skills",
    "context.max_tokens",
    "context.shares.project",
    "context.shares.fabric",
    "context.shares.prior_work",
    "nebula.worktrees",
    "nebula.worktree_copy",
    "session.total",
    "session.per_tool_call",
    "session.history_max",
    "session.warning_threshold",
    "session.tools",
    ...["system", "history", "tool_results", "user", "response"].map((tier) => `session.tiers.${tier}`),
    "session.hints",
    "history.policy",
    "history.threshold",
    "history.keep",
    "history.reserve",
    "deny",
    "allow",
    "run.agent",
    "run.model",
    "run.allow",
    "run.args",
    "guard.session_usd",
    "guard.day_usd",
    "guard.on_limit",
    "store",
    "retention",
    "prices",
  ]);
});

test("every command has its help frozen", async () => {
  const { commandTable } = await import(/* @vite-ignore */ `${root}dist/cli/commands/index.js`);
  const names = commandTable.map(({ name }: { name: string }) => name);
  expect(names).toEqual([
    "init",
    "inject",
    "import",
    "setup",
    "undo",
    "packs",
    "notes",
    "sync",
    "audit",
    "count",
    "trim",
    "serve",
    "validate",
    "replay",
    "bill",
    "mcp",
    "plugin",
    "recall",
    "statusline",
    "guard",
    "session",
    "store",
    "compose",
    "snapshot",
    "fabric",
    "run",
    "nebula",
    "trust",
    "config",
    "completion",
  ]);
  for (const name of names) expect(existsSync(`${root}test/e2e/golden/help-${name}.txt`), name).toBe(true);
});

function declaredNames(path: string): string[] {
  const { module } = parseSync(path, readFileSync(path, "utf8"));
  const entries = module.staticExports.flatMap((each) => each.entries);
  return entries.flatMap(({ exportName }) => exportName.name ?? []).sort();
}

interface Schema {
  properties?: Record<string, Schema>;
}

function keysOf({ properties = {} }: Schema): string[] {
  return Object.entries(properties).flatMap(([key, inner]) =>
    inner.properties === undefined ? key : keysOf(inner).map((each) => `${key}.${each}`),
  );
}
