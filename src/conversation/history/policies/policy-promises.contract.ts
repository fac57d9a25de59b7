/** The promises that every policy makes for a call, given the previous call. */
import { expect } from "vitest";
import { countMessages, type MessageLens, validateRequest } from "../../../core/messages/index.ts";
import type { Checkpoint } from "../checkpoint.ts";
import { createTrimmer } from "../trimmer.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";
import { type PlacedPart, partsOf, placeholderOf, type Step } from "./policy-run.contract.ts";

export type Promises = Readonly<Record<string, (step: Step, before: Step | undefined) => void | Promise<void>>>;

export const promises: Promises = {
  "tells what it sends"({ reduction, input, settings, lens }) {
    const { messages, stats, breakpoints } = reduction;
    const count = (list: readonly object[]) =>
      countMessages(list, settings.counter!, { format: lens.format, model: settings.model });
    expect(stats.after).toBe(count(messages));
    if (!isRfc(settings)) expect(stats.before).toBe(count(input));
    expect(stats.kept).toBeLessThanOrEqual(stats.before);
    for (const index of breakpoints) expect(messages[index]).toBeDefined();
    expect([...breakpoints].sort((a, b) => a - b)).toEqual(breakpoints);
  },

  "same input, same bytes, also after a restart"({ sent, checkpoint, reduction, resumed }) {
    expect(resumed.sent).toEqual(sent);
    expect(withoutHashes(resumed.checkpoint)).toEqual(withoutHashes(checkpoint));
    expect({ ...resumed.reduction, messages: [] }).toEqual({ ...reduction, messages: [] });
  },

  "what was sent is the beginning of what is sent, save for an epoch"({ reduction, sent }, before) {
    if (before === undefined || reduction.isEpoch) return;
    expect(sent.slice(0, before.sent.length)).toEqual(before.sent);
    for (const [index, message] of before.reduction.messages.entries())
      expect(reduction.messages[index] === message).toBe(true);
  },

  "the boundary, the epochs and the ledger only grow"({ reduction, checkpoint }, before) {
    if (before === undefined) return;
    const { stats } = before.reduction;
    expect(reduction.stats.boundary).toBeGreaterThanOrEqual(stats.boundary);
    expect(reduction.stats.epochs).toBe(stats.epochs + Number(reduction.isEpoch));
    const { epochs } = before.checkpoint.ledger;
    expect(checkpoint.ledger.epochs.slice(0, epochs.length)).toEqual(epochs);
  },

  "a placeholder stays as it is or goes"({ reduction, lens }, before) {
    if (before === undefined) return;
    const now = new Map(placeholders(reduction.messages, lens));
    const there = new Set(partsOf(reduction.messages, lens).map(nameOf));
    for (const [name, text] of placeholders(before.reduction.messages, lens))
      if (there.has(name)) expect(now.get(name)).toBe(text);
  },

  "at most one digest, inside of a result and within its share"({ input, reduction, lens, settings }) {
    const given = digests(input, lens).length;
    const found = digests(reduction.messages, lens);
    if (given > 0) return;
    expect(found.length).toBeLessThanOrEqual(1);
    for (const { kind, tokens, pieces } of found) {
      expect(kind).toBe("tool_result");
      const text = pieces.map((piece) => ("text" in piece ? piece.text : "")).join("");
      const digest = text.slice(text.search(digestStart) + 1);
      expect(settings.counter!.count(digest)).toBeLessThanOrEqual(0.075 * reduction.stats.budget);
      expect(tokens).toBeLessThanOrEqual(0.075 * reduction.stats.budget + 80);
    }
  },

  "a valid request stays valid"({ input, reduction, lens }) {
    const { format } = lens;
    for (const strict of [false, true]) {
      if (validateRequest(input, { format, strict }).length > 0) continue;
      expect(validateRequest(reduction.messages, { format, strict })).toEqual([]);
    }
  },

  "the person's and the system's words and pictures come through"({ input, reduction, lens }) {
    const said = (messages: readonly object[]) =>
      partsOf(messages, lens)
        .filter(({ role, kind }) => role !== "assistant" && kind !== "tool_result")
        .map((part) => [part.role, part.kind, contentOf(part)]);
    expect(said(reduction.messages)).toEqual(said(input));
  },

  "calls and results keep ids, names and order"({ input, reduction, lens, settings }) {
    const names = (messages: readonly object[]) => partsOf(messages, lens).filter(isPaired).map(nameOf);
    const left = new Set(names(reduction.messages));
    expect(names(reduction.messages)).toEqual(names(input).filter((name) => left.has(name)));
    if (isRfc(settings)) expect(left.size).toBe(names(input).length);
  },

  "thinking is the caller's own or not there"({ input, reduction, lens }) {
    const thinking = (messages: readonly object[]) =>
      partsOf(messages, lens).flatMap(({ kind, value }) => (kind === "thinking" ? [value] : []));
    const own = new Set(thinking(input));
    for (const value of thinking(reduction.messages)) expect(own.has(value)).toBe(true);
  },

  "what did not change is the caller's own object"({ input, reduction, settings }) {
    const { trimmed } = reduction.stats;
    const own = new Map(input.map((message) => [JSON.stringify(message), message]));
    const objects = new Set(input);
    for (const message of reduction.messages) {
      const text = JSON.stringify(message);
      if (own.has(text) && !text.includes("[trimmed")) expect(objects.has(message)).toBe(true);
    }
    if (isRfc(settings)) return;
    const sent = new Set(reduction.messages);
    for (const [index, message] of input.entries())
      expect(sent.has(message), `messages[${index}]`).toBe(!trimmed.includes(index));
  },

  async "trimmed again it stays the same"({ reduction, sent, settings }) {
    const again = await (await createTrimmer(settings)).reduceWithSummary({ messages: reduction.messages });
    expect(again.messages.map((message) => JSON.stringify(message))).toEqual(sent);
  },
};

/** A summary may take the place of the digest. */
const digestStart = /\n\[(?:trimmed earlier[:\]]|summary of what was trimmed earlier:\n)/;

function digests(messages: readonly object[], lens: MessageLens): PlacedPart[] {
  return partsOf(messages, lens).filter(({ pieces }) =>
    pieces.some((piece) => "text" in piece && digestStart.test(piece.text)),
  );
}

function withoutDigest(text: string): string {
  return text.split(digestStart)[0] as string;
}

function isRfc({ policy }: TrimmerOptions): boolean {
  return policy === "rfc" || policy === "rfc-headroom";
}

function isPaired({ kind }: PlacedPart): boolean {
  return kind === "tool_call" || kind === "tool_result";
}

function nameOf({ kind, callId, toolName }: PlacedPart): string {
  return `${kind} ${callId} ${toolName}`;
}

function contentOf({ kind, value, pieces }: PlacedPart): unknown {
  return kind === "text" ? pieces : value;
}

/** Results by the call that they belong to. */
function placeholders(messages: readonly object[], lens: MessageLens): [string, string][] {
  const parts = partsOf(messages, lens).filter(isPaired);
  return parts.flatMap((part): [string, string][] => {
    const text = placeholderOf(part);
    // A shortened result may become shorter, and a digest goes to another result.
    return text === undefined || text.includes(" characters]") ? [] : [[nameOf(part), withoutDigest(text)]];
  });
}

/** Two processes have different keys, and so different hashes of the same history. */
export function withoutHashes({ ledger, ...rest }: Checkpoint): object {
  const withoutChain = (name: string, value: unknown): unknown => (name === "chain" ? "" : value);
  return { ...rest, epochs: JSON.parse(JSON.stringify(ledger.epochs, withoutChain)) };
}
