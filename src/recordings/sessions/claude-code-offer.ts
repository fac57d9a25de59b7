/** Finds what Claude Code offers to the model besides the tools that are always there: deferred tools, skills, agents and MCP
 *  servers. It records them as attachments since about version 2.1.100. */

import type { Fields } from "../../core/text/index.ts";
import { countChars, type Offer, type SessionFacts } from "./session-facts.ts";

/** Notes what an attachment of the main conversation offers. */
export function readOffer(attachment: unknown, facts: SessionFacts): void {
  const { type, content, addedNames, addedLines, addedTypes, addedBlocks } = Object(attachment) as Fields;
  const offer = openOffer(facts);
  const isFirst = facts.calls.length === 0;
  const addChars = (part: string, value: unknown): void => {
    if (isFirst) offer.chars[part] = (offer.chars[part] ?? 0) + countChars(value);
  };
  if (type === "deferred_tools_delta") {
    addNames(offer.tools, addedNames);
    addNames(
      offer.servers,
      readNames(addedNames).flatMap((name) => /^mcp__(.+?)__/.exec(name)?.[1] ?? []),
    );
    addChars("deferred tools", addedLines);
  } else if (type === "mcp_instructions_delta") {
    addNames(offer.servers, addedNames);
    addChars("instructions of MCP servers", addedBlocks);
  } else if (type === "skill_listing") {
    addNames(
      offer.skills,
      Array.from(String(content).matchAll(/^- ([\w:.-]+): /gm), ([, name]) => name),
    );
    addChars("skills", content);
  } else if (type === "agent_listing_delta") {
    addNames(offer.agents, addedTypes);
    addChars("agents", addedLines ?? content);
  } else if (type === "nested_memory") addChars("rules", (Object(content) as Fields).content);
  else if (type === "hook_success" || type === "hook_additional_context") addChars("hooks", content);
}

/** Notes a skill or an agent that the model uses, and what a person wrote first. */
export function readUse({ name, input }: Fields, facts: SessionFacts): void {
  const { skill, command, subagent_type: agent } = Object(input) as Fields;
  if (name === "Skill") addNames(openOffer(facts).used, [`skill ${String(skill ?? command).replace(/^\//, "")}`]);
  if (name === "Agent" || name === "Task") addNames(openOffer(facts).used, [`agent ${agent ?? "general-purpose"}`]);
}

export function readFirstPrompt(content: unknown, facts: SessionFacts): void {
  if (facts.calls.length > 0) return;
  const { chars } = openOffer(facts);
  chars.prompt = (chars.prompt ?? 0) + countChars(content);
}

function openOffer(facts: SessionFacts): Offer {
  facts.offer ??= { chars: {}, tools: [], skills: [], agents: [], servers: [], used: [] };
  return facts.offer;
}

/** A session may offer a thousand tools again and again. */
const mostNames = 5_000;

function addNames(known: string[], names: unknown): void {
  const own = new Set(known);
  for (const name of readNames(names)) {
    if (own.has(name) || known.length >= mostNames) continue;
    own.add(name);
    known.push(name);
  }
}

function readNames(names: unknown): readonly string[] {
  if (!Array.isArray(names)) return [];
  return names.filter((name): name is string => typeof name === "string" && name.length <= 200);
}
