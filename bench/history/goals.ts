/** What the measurements are held against. `floor` is what must hold, `goal` what is aimed at. A peer that was left out has no goal. */
import { createLine } from "./bound/frontier.ts";
import type { ReadPriceRow } from "./measure-read-prices.ts";
import type { TurnsReport } from "./measure-turns.ts";
import type { Row, WindowReport } from "./measure-window.ts";

export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

export function goalsOf(windows: readonly WindowReport[], turns: TurnsReport): Goal[] {
  return [...windows.filter(({ needing }) => needing > 0).flatMap(windowGoals), ...turnGoals(turns)];
}

export function readPriceGoals(rows: readonly ReadPriceRow[]): Goal[] {
  return rows.map(({ window, read, toBound = Number.NaN }) =>
    most(
      `${window / 1_000}k, reading at ${read} of input: economic ÷ offline bound at equal kept share`,
      toBound,
      1.06,
    ),
  );
}

/** Economic at most so much of `rfc` at equal kept share, and breaks a hundred calls. */
const rfcShares: Readonly<Record<number, { goal: number; floor: number }>> = {
  64000: { goal: 0.8, floor: 0.8 },
  128000: { goal: 0.9, floor: 0.93 },
};
const breaks = { from: 128_000, goal: 1, floor: 1.3 };
const boundShares = { goal: 1.05, floor: 1.08 };

function windowGoals({ window, rows, line, fitting, fewestBreaksPer100 }: WindowReport): Goal[] {
  const named = (name: string): Row => rows.find((row) => row.name === name)!;
  const [economic, rfc] = [named("economic"), named("rfc")];
  const at = (what: string): string => `${window / 1_000}k: ${what}`;
  const toRfc = (createLine(line)(rfc.kept) ?? Number.NaN) / rfc.needing;
  const rfcShare = rfcShares[window];
  const { toBound = Number.NaN, breaksPer100 } = economic;
  const fewest = fewestBreaksPer100.protecting.toFixed(2);
  const invalid = rows.reduce((sum, row) => sum + (row.kind === "policy" ? row.invalid : 0), 0);
  return [
    ...both(at("economic ÷ offline bound at equal kept share"), toBound, boundShares),
    ...(rfcShare === undefined ? [] : both(at("economic ÷ rfc at equal kept share"), toRfc, rfcShare)),
    ...(window < breaks.from
      ? []
      : both(at(`breaks of economic a hundred calls, fewest possible ${fewest}`), breaksPer100, breaks)),
    most(at("requests of economic over the window"), economic.overWindow, 0),
    ...(fitting === 0 ? [] : [most(at("economic ÷ none on sessions that fit"), economic.fitting, 1.01)]),
    most(at("invalid requests of all policies"), invalid, 0),
    ...rows.filter(isRival).map(({ name, toLine = Number.NaN }) => {
      return least(at(`${name} ÷ economic at equal kept share`), toLine, 1);
    }),
  ];
}

/** A peer that stays valid and within the window, and that keeps no more than economic can. */
function isRival({ kind, overWindow, invalid, toLine }: Row): boolean {
  return kind === "peer" && overWindow === 0 && invalid === 0 && toLine !== undefined;
}

function turnGoals({ peers, scaling, reparsed }: TurnsReport): Goal[] {
  const recounting = peers.peers.filter(({ isRecounting }) => isRecounting);
  const { short, long, ratio } = scaling;
  return [
    ...recounting.map(({ name, known }) => {
      return least(`${name} ÷ economic, time at ${peers.messages} messages`, known / peers.known, 10);
    }),
    most(`a turn after ${long.messages} messages ÷ one after ${short.messages}, with epochs`, ratio, 1.5),
    most(`likewise, a turn that only appends`, long.plain / short.plain, 1.5),
    most(
      `a turn that only appends after ${short.messages} messages and a system text, milliseconds`,
      short.plain,
      0.15,
    ),
    ...reparsed.map(({ messages, ratio: share }) => {
      return most(`reduction ÷ JSON.parse, ${messages} messages parsed again`, share, 1);
    }),
  ];
}

function both(what: string, measured: number, { goal, floor }: { goal: number; floor: number }): Goal[] {
  const goals = [most(what, measured, goal)];
  return floor === goal ? goals : [...goals, most(`${what} (floor)`, measured, floor)];
}

function most(what: string, measured: number, bound: number): Goal {
  return { goal: `${what}, at most ${bound}`, measured, met: measured <= bound };
}

function least(what: string, measured: number, bound: number): Goal {
  return { goal: `${what}, at least ${bound}`, measured, met: measured >= bound };
}
