/** Facts in the form in which an index keeps them: numbers in one list and each name once, because parsing an object for
 *  each call and result took most of the time of a second run. Plain JSON. */

import type { Tariff, UsageStep } from "../core/billing/index.ts";
import type { CallFact, Mark, ResultFact, SessionFacts } from "./sessions/session-facts.ts";

export interface PackedFacts extends Omit<SessionFacts, "calls" | "results"> {
  /** Models, tools and files. */
  readonly names: readonly string[];
  readonly ids: readonly string[];
  /** Numbers of all calls, one after the other: see `unpackCall`. */
  readonly calls: readonly number[];
  /** What only few calls have, by the index of the call. */
  readonly rare: readonly (readonly [call: number, rare: RareFields])[];
  /** Numbers of all results: call, tool, file, characters. */
  readonly results: readonly number[];
}

interface RareFields {
  readonly marks?: readonly Mark[];
  readonly back?: number | undefined;
  readonly extra?: readonly UsageStep[] | undefined;
  readonly tariff?: Tariff | undefined;
  readonly diagnosis?: string | undefined;
  readonly unreported?: number | undefined;
}

export function packFacts({ calls, results, ...facts }: SessionFacts): PackedFacts {
  const names: string[] = [];
  const places = new Map<string, number>();
  const findPlace = (name: string | undefined): number => {
    if (name === undefined) return none;
    const place = places.get(name) ?? names.push(name) - 1;
    places.set(name, place);
    return place;
  };
  // Field by field: a status line packs thousands of calls, and lists of lists are slow.
  const packed = {
    ids: [] as string[],
    calls: [] as number[],
    rare: [] as [number, RareFields][],
    results: [] as number[],
  };
  for (const [index, call] of calls.entries()) {
    const { marks, back, extra, tariff, diagnosis, unreported } = call;
    packed.ids.push(call.id);
    packed.calls.push(findPlace(call.model), call.time, call.start, call.chain, call.previous, findPlace(call.tool));
    packed.calls.push(call.added, call.read, call.write5m, call.write1h, call.uncached, call.output);
    const isRare = [back, extra, tariff, diagnosis, unreported].some((each) => each !== undefined);
    if (marks.length > 0 || isRare) packed.rare.push([index, { marks, back, extra, tariff, diagnosis, unreported }]);
  }
  for (const { call, tool, file, chars } of results) packed.results.push(call, findPlace(tool), findPlace(file), chars);
  return { ...facts, ...packed, names };
}

/** The place of a name that is absent. */
const none = -1;
const callNumbers = 12;
const resultNumbers = 4;

export function unpackFacts({ names, ids, calls: numbers, rare, results, ...facts }: PackedFacts): SessionFacts {
  const rares = new Map(rare);
  const calls = ids.map((id, index) =>
    unpackCall(id, { numbers, at: index * callNumbers, names, rare: rares.get(index) }),
  );
  const unpacked: ResultFact[] = [];
  for (let at = 0; at < results.length; at += resultNumbers) {
    unpacked.push({
      call: results[at] as number,
      tool: names[results[at + 1] as number] as string,
      file: names[results[at + 2] as number],
      chars: results[at + 3] as number,
    });
  }
  return { ...facts, calls, results: unpacked };
}

function unpackCall(
  id: string,
  {
    numbers,
    at,
    names,
    rare,
  }: { numbers: readonly number[]; at: number; names: readonly string[]; rare: RareFields | undefined },
): CallFact {
  return {
    id,
    model: names[numbers[at] as number] as string,
    time: numbers[at + 1] as number,
    start: numbers[at + 2] as number,
    chain: numbers[at + 3] as number,
    previous: numbers[at + 4] as number,
    tool: names[numbers[at + 5] as number],
    added: numbers[at + 6] as number,
    read: numbers[at + 7] as number,
    write5m: numbers[at + 8] as number,
    write1h: numbers[at + 9] as number,
    uncached: numbers[at + 10] as number,
    output: numbers[at + 11] as number,
    marks: rare?.marks ?? noMarks,
    back: rare?.back,
    extra: rare?.extra,
    tariff: rare?.tariff,
    diagnosis: rare?.diagnosis,
    unreported: rare?.unreported,
  };
}

const noMarks: readonly Mark[] = [];
