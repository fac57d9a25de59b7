/** What Anthropic bills for tools: the definitions, a system prompt of its own, fixed sizes for the tools it defines itself. */
import { withoutCacheMarkers } from "../cache-markers.ts";
import { type Fields, failAt, jsonAt, stringAt } from "../fields.ts";
import type { ToolChoice, ToolReading } from "../message-format.ts";

/** `defer_loading`, `cache_control` and the like are not part of what the model reads. */
export function readAnthropicTool(tool: Fields, path: string): ToolReading {
  const type = tool.type;
  if (tool.function !== undefined) failAt(`${path}.function`, "is no field of this format");
  if (typeof type === "string" && type !== "custom") return readProviderTool(tool, type, path);
  const { description, input_schema, input_examples } = tool;
  const name = stringAt(tool, "name", path);
  return { text: jsonAt({ name, description, input_schema, input_examples }, path), fixedTokens: 0 };
}

export function anthropicToolPromptTokens(model: string | undefined, toolChoice: ToolChoice): number {
  const known = toolPrompts.find(([pattern]) => model !== undefined && pattern.test(model.toLowerCase()));
  const tokens = (known ?? dearestToolPrompt)[1];
  return toolChoice === "any" || toolChoice === "tool" ? tokens.any : tokens.auto;
}

/** `any` is the row of `any` and `tool`; `auto` that of `auto` and `none`, which keeps the prompt as long as there are tools. */
type ToolPrompt = readonly [RegExp, Readonly<Record<"auto" | "any", number>>];

const dearestToolPrompt: ToolPrompt = [/opus-4[-.]7/, { auto: 675, any: 804 }];

// "Tool use system prompt token count" by model (platform.claude.com, Tool use, 2026). First match wins; a model not listed costs the dearest.
const toolPrompts: readonly ToolPrompt[] = [
  dearestToolPrompt,
  [/opus-4[-.]8/, { auto: 290, any: 410 }],
  [/sonnet-5(?![-.]\d\d?(?!\d))/, { auto: 354, any: 474 }],
  [/(?:opus|sonnet)-4[-.]6/, { auto: 497, any: 589 }],
  [/(?:opus|sonnet|haiku)-4[-.]5/, { auto: 496, any: 588 }],
  [/(?:opus|sonnet)-4(?:[-.][01])?(?![-.]\d\d?(?!\d))/, { auto: 313, any: 315 }],
  [/3[-.][57]-sonnet|sonnet-3[-.][57]/, { auto: 346, any: 313 }],
  [/3[-.]5-haiku|haiku-3/, { auto: 264, any: 340 }],
];

// Input tokens of Anthropic-defined tools (Pricing, 2026): bash 245, text editor 700, computer 735 and up to 499 of system prompt.
const providerTools: readonly (readonly [string, number])[] = [
  ["bash_", 245],
  ["text_editor_", 700],
  ["computer_", 1234],
];
const unlistedProviderToolTokens = 700; // own choice: no figure is published for search, fetch, code execution, memory

function readProviderTool(tool: Fields, type: string, path: string): ToolReading {
  const rest = withoutCacheMarkers(tool);
  const fixed = providerTools.find(([prefix]) => type.startsWith(prefix))?.[1];
  return { text: jsonAt(rest, path), fixedTokens: fixed ?? unlistedProviderToolTokens };
}
