/** What the APIs of all providers share on the wire. */

/**
 * @typedef {object} Received what an API makes of a request
 * @property {{ status: number, json: object, headers?: Record<string, string> }} [refusal]
 * @property {string} [message] the refusal's text
 * @property {object} [count] the answer to a request that only counts
 * @property {import("./anthropic-cache.mjs").InputTokens} [tokens]
 * @property {{ path: string, reason: string }[]} [dropped]
 * @property {Record<string, string>} [headers]
 *
 * @typedef {object} Route
 * @property {RegExp} matches
 * @property {(body: object) => string[]} tools
 * @property {(body: object) => number} steps how many calls the model has made
 * @property {(body: object) => string[]} results
 * @property {(body: object, headers: Record<string, string>) => Received} receive
 * @property {(status: number) => object} fail
 * @property {(facts: object) => object} [whole]
 * @property {(facts: object) => string[]} [stream]
 *
 * @typedef {Route[]} Api
 */

export const noTokens = { uncached: 0, write5m: 0, write1h: 0, read: 0 };

/** @param {import("./anthropic-cache.mjs").InputTokens} tokens */
export function totalOf({ uncached, write5m, write1h, read }) {
  return uncached + write5m + write1h + read;
}

/** One server-sent event. @param {object} value @param {string} [name] */
export function eventLine(value, name) {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;
}

/** The text of a string or of a list of blocks. @param {unknown} content */
export function joinTexts(content) {
  if (typeof content === "string") return content;
  return [content ?? []]
    .flat()
    .map(({ text }) => text ?? "")
    .join("\n");
}
