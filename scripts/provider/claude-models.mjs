/** What the provider knows of Claude's models: whose thinking is bound to its prefix, who reads it, and from how many
 *  tokens on a prefix is cached. The tests judge Plimsoll by this table, so it must not come from `src/`. */

/**
 * How a thinking block that does not fit its prefix is judged when a request does not say: `always` refuses it,
 * `by-account` refuses it for accounts that were created from 2026-08-31 on, `never` does not look.
 * Source: platform.claude.com, preserved thinking (2026-10-10) and Fable 5.2 (2026-11-09).
 * @type {Record<string, "always" | "by-account">}
 */
const bindings = {
  "fable-5.2": "always",
  "mythos-5.2": "always",
  "mythos-5.1": "always",
  "fable-5.1": "by-account",
  "opus-5.5": "by-account",
  "sonnet-5.5": "by-account",
  "haiku-5.5": "by-account",
};
const newest = { fable: 5.2, mythos: 5.2, opus: 5.5, sonnet: 5.5, haiku: 5.5 };
export const bindingSince = Date.UTC(2026, 7, 31);

/**
 * @typedef {object} ClaudeModel
 * @property {string} family
 * @property {number} version
 * @property {"always" | "by-account" | "never"} binding
 * @property {boolean} isNewer whether no table knows the model yet
 */

/** Reads a model's name, also with the prefixes and suffixes of Bedrock, Vertex and routers. A name that is not known
 *  is a newer model.
 *  @param {string} name @returns {ClaudeModel} */
export function readClaudeModel(name) {
  const [, family, major, minor = "0"] =
    /(opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d{1,2})(?!\d))?/.exec(name) ?? [];
  if (family === undefined) {
    const isOld = /claude-(?:instant|[123])(?!\d)|preview/.test(name) || !name.includes("claude");
    return { family: "", version: isOld ? 3 : 99, binding: isOld ? "never" : "always", isNewer: !isOld };
  }
  const version = Number(`${major}.${minor}`);
  const isNewer = version > newest[family];
  const binding = isNewer ? "always" : (bindings[`${family}-${version}`] ?? "never");
  return { family, version, binding, isNewer };
}

/** The shortest prefix that is cached. Source: prompt caching page, 2026-11. @param {ClaudeModel} model */
export function minimumCacheTokens({ family, version, isNewer }) {
  const isFrom = (families, first) => families.includes(family) && version >= first;
  if (isNewer || isFrom(["fable", "mythos", "opus"], 5) || isFrom(["sonnet", "haiku"], 5.5)) return 512;
  if (family === "opus" && version === 4.7) return 2_048;
  if (family === "opus" && (version === 4.5 || version === 4.6)) return 4_096;
  return family === "haiku" && version >= 4.5 ? 4_096 : 1_024;
}

/** Whether the model still reads the thinking of turns before the last question. Older models lose it there.
 *  @param {ClaudeModel} model */
export function keepsEarlierThinking({ family, version, isNewer }) {
  const first = { opus: 4.5, sonnet: 4.6, haiku: 5.5 }[family] ?? 0;
  return isNewer || version >= first;
}

/** @param {ClaudeModel} model */
export function thinksAlways({ family, version, isNewer }) {
  return isNewer || family === "fable" || family === "mythos" || (family === "opus" && version >= 5.5);
}

/** Whether `reader` can read thinking that `author` wrote. A block that it cannot read is dropped.
 *  @param {ClaudeModel} reader @param {ClaudeModel} author */
export function canReadThinking(reader, author) {
  if (reader.isNewer || reader.version === 5.2) return true;
  if (author.isNewer || author.version === 5.2) return false;
  const name = `${author.family}-${author.version}`;
  const { older, others } = readers[`${reader.family}-${reader.version}`] ?? readers.older;
  return author.binding === "never" ? older(author) : others.includes(name);
}

const anyOlder = () => true;
const olderSmall = ({ family, version }) => version <= ({ sonnet: 5, haiku: 4.5 }[family] ?? 4.8);

/** Whose thinking a model reads: of older models, and of models that bind it. Source: platform.claude.com, 2026-10-10. */
const readers = {
  older: { older: anyOlder, others: [] },
  "fable-5.1": { older: anyOlder, others: ["fable-5.1", "mythos-5.1", "opus-5.5"] },
  "mythos-5.1": { older: anyOlder, others: ["fable-5.1", "mythos-5.1", "opus-5.5"] },
  "opus-5.5": { older: ({ family }) => family !== "fable", others: ["opus-5.5", "sonnet-5.5", "haiku-5.5"] },
  "sonnet-5.5": { older: olderSmall, others: ["sonnet-5.5", "haiku-5.5"] },
  "haiku-5.5": { older: olderSmall, others: ["haiku-5.5"] },
};

/** Whether a block of this model is readable for its own account alone. @param {ClaudeModel} model */
export function isTiedToAccount({ family, version, isNewer }) {
  return isNewer || version === 5.2 || (version === 5.5 && family !== "opus");
}
