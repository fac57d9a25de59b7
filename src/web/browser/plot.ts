/** Plots as SVG: axes, and at most one column per pixel, however many calls there are. */
import { shape, whole } from "./elements.ts";

export interface Plot {
  readonly svg: SVGSVGElement;
  readonly width: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  y(value: number): number;
}

/** Empties a chart and measures it. Values from 0 to `max` fill its height; the axes have room around that. */
export function startPlot(svg: SVGSVGElement, max: number): Plot {
  const width = Math.max(120, svg.clientWidth);
  const height = Math.max(80, svg.clientHeight);
  const [top, bottom] = [16, height - 20];
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { svg, width, left: 42, right: width - 6, top, bottom, y: (value) => bottom - (value / max) * (bottom - top) };
}

/** Draws horizontal lines at round values, with labels on the left. */
export function drawGrid(
  { svg, left, right, ...plot }: Plot,
  {
    from = 0,
    to,
    y = plot.y,
    label,
  }: {
    readonly from?: number;
    readonly to: number;
    readonly y?: (value: number) => number;
    readonly label: (value: number, step: number) => string;
  },
): void {
  const { step, values } = roundValues(from, to);
  for (const value of values) {
    const at = Math.round(y(value)) + 0.5;
    svg.append(shape("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }));
    svg.append(shape("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, label(value, step)));
  }
}

/** Returns about four round numbers within a range, and the step between them. */
export function roundValues(from: number, to: number): { readonly step: number; readonly values: readonly number[] } {
  const rough = (to - from) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  // Sums of fractions miss the end by a hair.
  const [first, last] = [Math.ceil(from / step - 1e-6), Math.floor(to / step + 1e-6)];
  return { step, values: Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step) };
}

/** How many decimals tell a label from the next one. */
export function countDecimals(step: number): number {
  return Math.max(0, -Math.floor(Math.log10(step) + 1e-6));
}

/** Labels the left end of the lower axis, and the right one. */
export function labelEnds({ svg, left, right, bottom }: Plot, first: string, last?: string): void {
  svg.append(shape("text", { x: left, y: bottom + 14, "text-anchor": "start" }, first));
  if (last !== undefined) svg.append(shape("text", { x: right, y: bottom + 14, "text-anchor": "end" }, last));
}

/** Draws the axes of a plot of tokens, call by call. */
export function drawCallAxes(plot: Plot, max: number, calls: number): void {
  const units = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
  ] as const;
  drawGrid(plot, {
    to: max,
    label: (value, step) => {
      const [unit, suffix] = units.find(([least]) => value >= least) ?? [1, ""];
      return Number((value / unit).toFixed(countDecimals(step / unit))) + suffix;
    },
  });
  labelEnds(plot, "call 1", whole(calls));
}

export interface CallScale {
  start(call: number): number;
  middle(call: number): number;
  findCall(x: number): number;
}

/** Calls side by side, each as wide as the others. */
export function createCallScale({ left, right }: Plot, calls: number): CallScale {
  const step = (right - left) / Math.max(1, calls);
  return {
    start: (call) => left + call * step,
    middle: (call) => left + (call + 0.5) * step,
    findCall: (x) => Math.max(0, Math.min(calls - 1, Math.floor((x - left) / step))),
  };
}

export interface Column {
  readonly x: number;
  readonly end: number;
  /** The call that the column shows. */
  readonly call: number;
}

/** Returns at most one column a pixel. If several calls share one, `choose` says which of them it shows. */
export function makeColumns(
  { left, right }: Plot,
  calls: number,
  choose: (from: number, to: number) => number,
): readonly Column[] {
  const count = Math.min(calls, Math.max(1, Math.floor(right - left)));
  const width = (right - left) / count;
  return Array.from({ length: count }, (_, column) => {
    const from = Math.floor((column * calls) / count);
    const to = Math.max(from + 1, Math.floor(((column + 1) * calls) / count));
    return { x: left + column * width, end: left + (column + 1) * width, call: choose(from, to) };
  });
}

export function findLargestCall(values: ArrayLike<number>, from: number, to: number): number {
  let best = from;
  for (let call = from + 1; call < to; call++) if (values[call]! > values[best]!) best = call;
  return best;
}

export function fixed(value: number): string {
  return value.toFixed(1);
}
