/** What others build on, frozen as literals: a change here is a change for users, and belongs in CHANGELOG.md.
 *  The help of every command is frozen in e2e/golden/. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest: { exports: Record<string, string> } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));

const errors = { values: ["ContextError", "errorCodes"], types: ["ErrorCode", "ErrorDetails"] };
const tokens = {
  values: [
    "billedInputTokens",
    "counterNameForModel",
    "counterNames",
    "createCalibrator",
    "createCounter",
    "families",
    "familyOfModel",
  ],
  types: ["Calibrator", "CalibratorSnapshot", "Counter", "CounterOptions", "Family", "Observation"],
};
const messages = {
  values: [
    "countMessage",
    "countMessages",
    "countSystem",
    "countTools",
    "createMessageLens",
    "formatNames",
    "formatOfRequest",
    "hashMessage",
    "isSameJson",
    "normaliseMessages",
    "validateRequest",
  ],
  types: [
    "CallName",
    "CountOptions",
    "CountToolsOptions",
    "CountedMessage",
    "CountedPart",
    "FormatName",
    "LensOptions",
    "MessageLens",
    "NormaliseOptions",
    "Part",
    "PartEdit",
    "PartEdits",
    "PartKind",
    "Piece",
    "Problem",
    "Role",
    "SealedCounting",
    "ToolChoice",
    "ValidateOptions",
  ],
};
/** For our own folders; a user gets them with the door alone. */
const checkedReads = ["failAt", "fieldsAt", "jsonAt", "stringAt", "typeName"];
const billing = {
  values: [
    "billableRequest",
    "breakEvenCalls",
    "costOfUsage",
    "createCacheSimulator",
    "economicBatch",
    "priceKeys",
    "priceOf",
    "providerOfModel",
    "providers",
  ],
  types: [
    "Bill",
    "BillableBlock",
    "BillableRequest",
    "BillableRequestOptions",
    "BlockKind",
    "Breakpoint",
    "CacheRules",
    "CacheSimulator",
    "CacheSimulatorOptions",
    "Growth",
    "InputTokens",
    "Lifetimes",
    "LongPrompt",
    "LookbackMode",
    "ModelPrice",
    "PriceOptions",
    "Prices",
    "Provider",
    "Trim",
    "Ttl",
    "UsageCost",
    "UsageOptions",
  ],
};
const history = {
  values: [
    "checkTrimmerOptions",
    "createContextManager",
    "createTrimmer",
    "dedupToolResults",
    "defaultReserve",
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
    "Anchor",
    "BudgetOptions",
    "BudgetOverflow",
    "Checkpoint",
    "ContextBudget",
    "ContextManager",
    "ContextManagerOptions",
    "ContextMetadata",
    "Decision",
    "Epoch",
    "LargePart",
    "Ledger",
    "LedgerEntry",
    "Overflow",
    "PlaceholderStyle",
    "PolicyName",
    "Recalled",
    "ReducedContext",
    "Reduction",
    "ResponsesRequest",
    "RfcMessage",
    "RfcPart",
    "TrimCall",
    "TrimRequest",
    "TrimStats",
    "Trimmer",
    "TrimmerOptions",
  ],
};
const budget = {
  values: ["createLedger", "leastAllocation", "ledgerTiers"],
  types: [
    "CallShare",
    "Ledger",
    "LedgerLimits",
    "LedgerOptions",
    "LedgerSnapshot",
    "LedgerTier",
    "LedgerTiers",
    "ModelView",
  ],
};
const session = {
  values: [
    "budgetParameter",
    "createSession",
    "deleteSession",
    "frameNames",
    "inputSchemaOf",
    "isFailure",
    "listSessions",
    "listStoredSessions",
    "readArguments",
    "readSession",
    "renderEntry",
    "shareOfLimit",
    "viewReport",
    "workLogViews",
  ],
  types: [
    "BudgetedTool",
    "CallOptions",
    "CompressInput",
    "Compressor",
    "ContinuationForm",
    "Cut",
    "Delivered",
    "Envelope",
    "ErrorEnvelope",
    "GivenCall",
    "HintMode",
    "JsonProperty",
    "JsonSchema",
    "LogEntry",
    "PageData",
    "PageFrame",
    "PageLimit",
    "PageOption",
    "ParameterValues",
    "ReadArguments",
    "RecallOptions",
    "Session",
    "SessionLine",
    "SessionOptions",
    "SessionReport",
    "SessionStatus",
    "StoredSession",
    "SuccessEnvelope",
    "ToolArguments",
    "ToolCall",
    "ToolFailure",
    "ToolParameter",
    "ToolParameters",
    "ToolResult",
    "ToolSchema",
    "WorkLogView",
    "WorkLogViewName",
  ],
};
const tools = {
  values: ["createTools"],
  types: [],
};
const compose = {
  values: [
    "addToFabric",
    "addWhatFits",
    "createContextBudget",
    "defaultMaxSnapshotTokens",
    "emptyFabric",
    "maxEntries",
    "maxEntryLength",
    "noteKinds",
    "phaseStates",
    "renderFabric",
    "renderSnapshot",
    "resolveEntry",
    "withTask",
  ],
  types: [
    "AddedReport",
    "Claim",
    "ComposedContext",
    "ComposedLayer",
    "ContextBudget",
    "ContextBudgetOptions",
    "ContextLayers",
    "ContextShares",
    "ConventionsFile",
    "Discovery",
    "Entanglement",
    "Fabric",
    "FabricKind",
    "FabricNote",
    "FabricPhase",
    "FabricReport",
    "FabricState",
    "FittedReport",
    "LayerName",
    "NoteKind",
    "PhaseState",
    "ProjectScan",
    "ReportedDiscovery",
    "ReportedNote",
    "Reporter",
    "ScanProblem",
    "Snapshot",
    "SnapshotOptions",
  ],
};
const agent = {
  values: [
    "agentCommand",
    "agentPresets",
    "applyNebula",
    "createContextHook",
    "createHookRegistry",
    "defaultAgentLimits",
    "fabricOf",
    "findAttempts",
    "lastWords",
    "lifecycleEvents",
    "loadNebula",
    "nebulaKey",
    "openNebulaRecord",
    "person",
    "planApply",
    "readAnswer",
    "removeAttempts",
    "renderTask",
    "scanProject",
    "standingOf",
    "startAgent",
    "wavesOf",
  ],
  types: [
    "AgentChoice",
    "AgentEnd",
    "AgentLimits",
    "AgentRequest",
    "AgentRun",
    "AgentSetting",
    "AgentState",
    "AnswerPlace",
    "ApplyEvent",
    "ApplyOptions",
    "ApplyPlan",
    "ApplyReport",
    "ContextHookOptions",
    "Environment",
    "Gate",
    "Hook",
    "HookContext",
    "HookOutcome",
    "HookRegistry",
    "LifecycleEvent",
    "LlmInput",
    "LoadedNebula",
    "Nebula",
    "NebulaProblem",
    "NebulaRecord",
    "OpenNebulaRecord",
    "Phase",
    "PhaseReport",
    "PhaseRun",
    "PlanOptions",
    "PlannedPhase",
  ],
};
const store = {
  values: ["createMemoryStore"],
  types: ["ListOptions", "ReadOptions", "RevisionOptions", "Store", "StoreRecord", "StreamEntry"],
};

const packs = {
  values: [
    "builtInProfiles",
    "createPackSource",
    "createProfile",
    "layers",
    "loadLint",
    "loadPackSchemas",
    "maxNoteBytes",
    "mergeLayers",
    "orderPacks",
    "packTextName",
    "readPack",
    "renderContext",
    "trimPacks",
  ],
  types: [
    "AdditivePosition",
    "DroppedPack",
    "Fact",
    "KnownError",
    "Layer",
    "Learning",
    "LintFinding",
    "LintInput",
    "Locale",
    "MergedPacks",
    "Pack",
    "PackBudget",
    "PackFile",
    "PackFolder",
    "PackLayer",
    "PackSource",
    "PackWarning",
    "Profile",
    "ProfilePack",
    "ReadPack",
    "RenderOptions",
    "Sample",
    "TrimmedPacks",
  ],
};

const doors: Record<string, Surface> = {
  ".": {
    values: [errors, tokens, messages, store].flatMap(({ values }) => values).sort(),
    types: [errors, tokens, messages, store].flatMap(({ types }) => types).sort(),
  },
  "./errors": errors,
  "./tokens": tokens,
  "./messages": { ...messages, values: [...messages.values, ...checkedReads].sort() },
  "./billing": billing,
  "./compose": compose,
  "./budget": budget,
  "./history": history,
  "./session": session,
  "./packs": packs,
  "./store": store,
  "./store/sqlite": { values: ["openSqliteStore"], types: ["SqliteStoreOptions"] },
  "./tools": tools,
  "./agent": agent,
  "./ai-sdk": {
    values: ["contextBudgetMiddleware", "contextBudgetPrepareStep"],
    types: ["CallParams", "MiddlewareOptions", "PrepareStep", "PrepareStepOptions", "Step", "TrimEvent"],
  },
  "./anthropic": {
    values: ["withContextBudget"],
    types: ["AnthropicOptions", "AnthropicRequest", "BreakpointMode", "TrimEvent"],
  },
  "./openai": {
    values: ["withContextBudget"],
    types: ["OpenAiOptions", "OpenAiRequest", "TrimEvent"],
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
  const target = `${root}${manifest.exports[door]}`;
  const values = Object.keys(await import(/* @vite-ignore */ target)).sort();
  const types = declaredNames(target.replace(/\.js$/, ".d.ts")).filter((name) => !values.includes(name));
  expect({ values, types }).toEqual(expected);
});

test("errors have these codes", async () => {
  const { errorCodes } = await import(/* @vite-ignore */ `${root}dist/errors.js`);
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
  ]);
});

test("a configuration has these keys", () => {
  const schema: Schema = JSON.parse(readFileSync(`${root}schemas/config.schema.json`, "utf8"));
  expect(keysOf(schema)).toEqual([
    "counter",
    "title",
    "profile",
    "language",
    "tools",
    "own_files",
    "verbosity",
    "on_overflow",
    "company.source",
    "company.revision",
    "context.max_tokens",
    "context.shares.project",
    "context.shares.fabric",
    "context.shares.prior_work",
    "session.total",
    "session.per_tool_call",
    "session.history_max",
    "session.warning_threshold",
    "session.tools",
    "history.policy",
    "history.threshold",
    "history.keep",
    "history.reserve",
    "deny",
    "allow",
    "store",
    "prices",
  ]);
});

test("every command has its help frozen", async () => {
  const { commandTable } = await import(/* @vite-ignore */ `${root}dist/cli/command-table.js`);
  const names = commandTable.map(({ name }: { name: string }) => name);
  expect(names).toEqual([
    "init",
    "inject",
    "packs",
    "notes",
    "sync",
    "audit",
    "count",
    "trim",
    "validate",
    "replay",
    "mcp",
    "session",
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
