/** What Anthropic's Messages API refuses. Sources: the SDK's comments (1.8.0), the platform's pages, and errors quoted in issues (2026-11). */
import { eachBlock, type RuleSet } from "../rule-set.ts";
import { checkMarkers, checkNestedMarkers } from "./cache-markers.ts";
import { callInput, checkCalls, checkResultsFirst, checkServerTools, toolId } from "./calls.ts";
import {
  checkEmptyMessages,
  checkPlainTexts,
  checkSystemPrompt,
  checkTrailingWhiteSpace,
  emptyText,
  emptyTextOfResult,
} from "./content.ts";
import {
  blockRole,
  checkAlternation,
  checkFirstMessage,
  checkLastMessage,
  checkMessageCount,
  checkSystemMessages,
} from "./roles.ts";
import { checkCompaction, checkModelLimits, checkToolsGiven, compactionContent } from "./settings.ts";
import { checkThinkingLast, checkThinkingOfTurn, thinkingSignature } from "./thinking.ts";

export const anthropicRules: RuleSet = {
  always: [
    checkMessageCount,
    checkFirstMessage,
    checkSystemMessages,
    checkEmptyMessages,
    checkPlainTexts,
    checkSystemPrompt,
    eachBlock([
      blockRole,
      emptyText,
      emptyTextOfResult,
      toolId,
      callInput,
      thinkingSignature,
      compactionContent,
    ]),
    checkCalls,
    checkResultsFirst,
    checkServerTools,
    checkThinkingLast,
    checkThinkingOfTurn,
    checkMarkers,
    checkCompaction,
    checkModelLimits,
  ],
  strict: [checkAlternation, checkLastMessage, checkTrailingWhiteSpace, checkNestedMarkers, checkToolsGiven],
};
