/** The form in which the provider compares the prefix of a thinking block. It leaves out exactly what Anthropic's page on
 *  preserved thinking lists as ignored (2026-10-10); everything else counts. */
import { createHash } from "node:crypto";

/** One block without `cache_control`, with sorted keys. Returns undefined for a text of white space alone.
 *  @param {object} block @returns {string | undefined} */
export function canonicalBlock(block) {
  const known = canonical.get(block);
  if (known !== undefined) return known;
  const text = writeCanonical(block);
  if (text !== undefined) canonical.set(block, text);
  return text;
}

/** A caller in this process may send the same blocks with every request. @type {WeakMap<object, string>} */
const canonical = new WeakMap();

function writeCanonical(block) {
  const { cache_control: _, ...rest } = block;
  if (rest.type === "text" && typeof rest.text === "string") {
    rest.text = rest.text.trim();
    if (rest.text === "") return undefined;
  }
  if (rest.type === "tool_result") rest.content = canonicalContent(rest.content);
  return sortedJson(rest);
}

/** A string equals a list with one text block. @param {unknown} content @returns {string[]} */
export function canonicalContent(content) {
  return blocksOf(content).flatMap((block) => canonicalBlock(block) ?? []);
}

/** The tools in any order, without those that are loaded later. @param {readonly object[]} tools */
export function canonicalTools(tools) {
  return tools
    .filter(({ defer_loading }) => defer_loading !== true)
    .map((tool) => canonicalBlock(tool))
    .sort();
}

/** @param {unknown} content @returns {object[]} */
export function blocksOf(content) {
  if (content === undefined || content === null) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** @param {...(string | undefined)} parts */
export function hashOf(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part?.length}:${part}`);
  return hash.digest("base64url").slice(0, 22);
}

function sortedJson(value) {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${sortedJson(value[key])}`)
    .join(",")}}`;
}
