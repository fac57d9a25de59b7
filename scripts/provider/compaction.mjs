/** Anthropic's compaction on demand: a signed summary that stands for the messages before it. */
import { blocksOf, hashOf } from "./canonical.mjs";

export const compactionBeta = "compact-2026-09-04";
const longestInstructions = 16_384;

/** What may not be in a request for a summary. Source: platform.claude.com, compaction on demand, 2026-10-10. */
const forbidden = {
  stop_sequences: ({ stop_sequences: list = [] }) => list.length > 0,
  "output_config.format": ({ output_config: config }) => config?.format !== undefined,
  tool_choice: ({ tool_choice: choice }) => choice?.type === "any" || choice?.type === "tool",
  context_management: ({ context_management: edits }) => edits !== undefined,
  "task_budget.remaining": ({ task_budget: budget }) => budget?.remaining !== undefined,
};

/** Returns why a request for a summary, or one that sends a summary back, is refused.
 *  @param {object} body @param {string[]} betas @param {(signature: string) => object | undefined} unseal */
export function findCompactionProblem(body, betas, unseal) {
  const { compaction, messages } = body;
  if (compaction !== undefined) {
    if (!betas.includes(compactionBeta)) return "compaction: Extra inputs are not permitted";
    if ((compaction.instructions ?? "").length > longestInstructions)
      return `compaction.instructions: String should have at most ${longestInstructions} characters`;
    const field = Object.keys(forbidden).find((name) => forbidden[name](body));
    if (field !== undefined) return `compaction: \`${field}\` is not allowed together with \`compaction\``;
    const isNew = ({ type }) => type !== "compaction";
    if (!messages.some(({ content }) => blocksOf(content).some(isNew)))
      return "compaction_nothing_to_summarize: there is no message to summarize";
  }
  const [block] = blocksOf(messages[0].content);
  return block?.type === "compaction" ? checkBlock(block, unseal) : undefined;
}

function checkBlock({ content, signature }, unseal) {
  const sealed = unseal(signature);
  if (sealed?.summary === undefined) return "compaction_signature_invalid: the block was not made by this API";
  return sealed.summary === hashOf(content) ? undefined : "compaction_content_mismatch: the summary was changed";
}

/** The answer to a request for a summary. All of its tokens are in `iterations`.
 *  @param {object} message the answer that the request would get otherwise
 *  @param {string} summary @param {(summary: string) => string} sign */
export function compactionMessage(message, summary, sign) {
  const { usage } = message;
  const nothing = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  return {
    ...message,
    content: [{ type: "compaction", content: summary, signature: sign(summary) }],
    stop_reason: "compaction",
    usage: { ...nothing, iterations: [{ type: "compaction", ...usage }] },
  };
}
