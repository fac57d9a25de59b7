/** Settings of a request that its model refuses, or that do not go together with its messages. */
import type { Fields } from "../../fields.ts";
import {
  type BlockRule,
  blockPath,
  blocksOf,
  type CheckedRequest,
  type Problem,
  problem,
} from "../rule-set.ts";
import { rejects } from "./model-limits.ts";
import { isPaused } from "./roles.ts";

/** Rules `prefill`, `sampling-parameter`, `thinking-setting` and `forced-tool`. */
export function* checkModelLimits({ turns, fields, model }: CheckedRequest): Generator<Problem> {
  if (fields === undefined || model === undefined) return;
  const last = turns.at(-1);
  if (last?.role === "assistant" && !isPaused(last) && rejects(model, "prefill")) {
    yield problem(
      "prefill",
      `${last.path}.role`,
      `is "assistant"; ${model} takes no message that it would continue`,
    );
  }
  if (rejects(model, "sampling")) {
    for (const [key, standard] of samplingParameters) {
      const value = fields[key];
      if (value === undefined || value === null || value === standard) continue;
      yield problem("sampling-parameter", key, `is set; ${model} takes no sampling parameters`);
    }
  }
  yield* checkThinkingSetting(Object(fields.thinking) as Fields, model);
  const choice = (Object(fields.tool_choice) as Fields).type;
  if ((choice === "any" || choice === "tool") && rejects(model, "forced-tool")) {
    yield problem(
      "forced-tool",
      "tool_choice.type",
      `is "${choice}"; ${model} cannot be forced to use a tool`,
    );
  }
}

function* checkThinkingSetting({ type, budget_tokens }: Fields, model: string): Generator<Problem> {
  if (budget_tokens !== undefined && rejects(model, "budget")) {
    yield problem("thinking-setting", "thinking.budget_tokens", `is set; ${model} takes no thinking budget`);
  } else if (type === "disabled" && rejects(model, "disabled")) {
    yield problem("thinking-setting", "thinking.type", `is "disabled"; ${model} always thinks`);
  }
}

/** The value that the API has for them anyway is accepted. */
const samplingParameters: readonly (readonly [string, number | undefined])[] = [
  ["temperature", 1],
  ["top_p", 1],
  ["top_k", undefined],
];

export const compactionContent: BlockRule = ({ type, content }, place) => {
  if (type !== "compaction" || content !== "") return undefined;
  const message = "is empty; it is a text, or null after a compaction that failed";
  return problem("compaction-content", `${blockPath(place)}.content`, message);
};

function isCompaction(edit: unknown): boolean {
  const { type } = Object(edit) as Fields;
  return typeof type === "string" && type.startsWith("compact_");
}

/** Rules `compaction-edit` and `compaction-mid-turn`. */
export function* checkCompaction({ turns, fields }: CheckedRequest): Generator<Problem> {
  if (typeof fields?.compaction !== "object" || fields.compaction === null) return;
  const edits = (Object(fields.context_management) as Fields).edits;
  if (Array.isArray(edits) && edits.some(isCompaction)) {
    yield problem("compaction-edit", "compaction", "does not go together with a compact_ edit");
  }
  const last = turns.at(-1);
  if (
    last !== undefined &&
    blocksOf(last).some(({ type }) => type === "tool_result" || type === "tool_use")
  ) {
    yield problem("compaction-mid-turn", "compaction", `cannot begin in the middle of a turn (${last.path})`);
  }
}

/** Rule `tools-missing`. No error of the API is on record; a model that sees calls of tools it lacks goes astray. */
export function* checkToolsGiven({ turns, fields }: CheckedRequest): Generator<Problem> {
  const tools = fields?.tools;
  if (fields === undefined || (Array.isArray(tools) && tools.length > 0)) return;
  const hasCalls = turns.some((turn) => blocksOf(turn).some(({ type }) => type === "tool_use"));
  if (!hasCalls) return;
  const message = "is missing, although the messages have calls of tools";
  yield { ...problem("tools-missing", "tools", message), severity: "warning" };
}
