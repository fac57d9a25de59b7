/** Ids of originals: tool results that were shortened, trimmed or stored. Every part of the library takes its ids from
 *  here, so that an id names one original, whatever made it. */
import { hash } from "node:crypto";

/** Who numbers originals from 1. */
export interface IdOwner {
  readonly maker: "intake" | "history" | "session";
  readonly sessionId: string;
  readonly agentId?: string | undefined;
}

export interface OriginalIds {
  /** Returns the id of the original with this number. `content` tells apart two that got the same number. */
  idOf(sequence: number, content: string): string;
  /** Returns the number in an id of this owner, or in an older id such as `r12`; undefined if it is no id. For an id of
   *  another owner the number means nothing, so compare the id of what is found. */
  sequenceOf(id: string): number | undefined;
}

/** An id has ten base32 characters. Five are a hash of owner, number and content. The other five are the number, mixed
 *  with a hash of the owner: so its record is found without an index, no two numbers of an owner share an id, and ids of
 *  different owners differ like random ones. Numbers above 33,554,431 start again from 0. */
export function createOriginalIds({ maker, sessionId, agentId = "" }: IdOwner): OriginalIds {
  const owner = [maker, sessionId, agentId];
  const mask = hashOf(owner);
  return {
    idOf: (sequence, content) =>
      write(hashOf([...owner, String(sequence), content])) + write((sequence % mostBits) ^ mask),
    sequenceOf(id) {
      if (!isOriginalId(id)) return undefined;
      return id.length === 2 * digits ? numberOf(id) ^ mask : Number(id.slice(1));
    },
  };
}

/** Whether a text has the form of an id, also of those that older versions wrote: `r12`. */
export function isOriginalId(text: string): boolean {
  return idForm.test(text);
}

/** The form of an id, for patterns of texts that have one. */
export const originalIdPattern = "(?:[a-z2-7]{10}|r\\d{1,8})";

const idForm = new RegExp(`^${originalIdPattern}$`);
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
const digits = 5;
const mostBits = 2 ** (5 * digits);

function hashOf(parts: readonly string[]): number {
  // In one step and as text: a history has thousands of ids, and this takes a third of the time of createHash.
  return Number.parseInt(hash("sha256", JSON.stringify(parts)).slice(0, 8), 16) % mostBits;
}

function write(value: number): string {
  let text = "";
  for (let left = value % mostBits; text.length < digits; left = Math.floor(left / 32))
    text = alphabet[left % 32] + text;
  return text;
}

function numberOf(id: string): number {
  return [...id.slice(-digits)].reduce((value, character) => value * 32 + alphabet.indexOf(character), 0);
}
