/** The fabric layer: its sections give way in an order, discoveries last. */
import type { Counter } from "../../tokens/index.ts";
import { countUpTo } from "./count-up-to.ts";
import { largestWithin } from "./largest-within.ts";
import { type FittedLayer, type Layer, type Measure, readWhole, wholeText, withoutEdges } from "./layer.ts";
import { readSections, type Section } from "./read-sections.ts";
import {
  itemsWithin,
  type KeptSections,
  type RenderedSections,
  renderSections,
  type SectionedText,
} from "./render-sections.ts";
import { truncateText } from "./truncate-text.ts";

/** The fabric layer. Above its least only items of sections without discoveries give way; below it their headings do too. */
export function createSectionsLayer(text: string, measure: Measure): Layer {
  const whole = readWhole(text, measure);
  // A layer that stays whole is never read.
  let cutter: Cutter | undefined;
  const open = (): Cutter => {
    cutter ??= createCutter(withoutEdges(text), measure);
    return cutter;
  };
  return {
    need: whole.need,
    get least() {
      return open().least;
    },
    fit(limit) {
      return whole.within(limit) ?? open().cut(limit);
    },
  };
}

interface Cutter {
  readonly least: number;
  cut(limit: number): FittedLayer;
}

function createCutter(text: string, measure: Measure): Cutter {
  const { counter } = measure;
  const sections = readSections(text);
  const items = sections.reduce((sum, { itemStarts }) => sum + itemStarts.length, 0);
  const sectioned = { text, sections, items };
  const stages = stepsOf(sectioned).map((step) => createStage(step, sectioned, measure));
  const hasDiscoveries = sections.some(({ isDiscovery }) => isDiscovery);
  let ofDiscoveries: number | undefined;
  const overflowOf = (stage: number, limit: number): number => {
    // The first two take nothing from discoveries.
    if (!hasDiscoveries || stage === 0 || stage === 1) return 0;
    ofDiscoveries ??= tokensOfDiscoveries(text, stages[1]!, counter);
    return Math.max(1, ofDiscoveries - limit);
  };
  return {
    least: stages[0]!.least(),
    cut(limit) {
      const index = stages.findIndex(({ least }) => least() <= limit);
      const overflow = overflowOf(index, limit);
      const facts = { truncated: true, isBelowLeast: index !== 0, overflow };
      if (index === -1) return { ...facts, text: "", tokens: 0, omitted: items };
      const rendered = stages[index]!.renderWithin(limit);
      const isBare = rendered.omitted === items;
      const text = isBare ? withFirstItem(rendered, { sectioned, counter, limit }) : rendered.text;
      return { ...facts, text, tokens: counter.count(text), omitted: rendered.omitted };
    },
  };
}

/** With the marker for all else that is left out, or with all else where that takes less: there may be nothing else. */
function tokensOfDiscoveries(text: string, stage: Stage, counter: Counter): number {
  const [alone, whole] = [stage.renderAt(0).text, wholeText(text)];
  if (alone.startsWith(whole)) return counter.count(whole);
  const tokens = counter.count(alone);
  return Math.min(tokens, countUpTo(counter, whole, tokens));
}

interface Stage {
  /** Tokens of what it leaves when all that it may take is gone; may be infinite where that is more than the whole budget. */
  least(): number;
  renderAt(number: number): RenderedSections;
  renderWithin(limit: number): RenderedSections;
}

function createStage(step: Step, sectioned: SectionedText, { counter, maxTokens }: Measure): Stage {
  const { most, keptAt } = step;
  const renderAt = (number: number): RenderedSections => renderSections(sectioned, keptAt(number));
  let tokens: number | undefined;
  return {
    renderAt,
    least() {
      tokens ??= countUpTo(counter, renderAt(0).text, maxTokens);
      return tokens;
    },
    renderWithin(limit) {
      const tokensAt = (number: number): number => countUpTo(counter, renderAt(number).text, limit);
      return renderAt(largestWithin({ limit, most, first: limit * 4, tokensAt }));
    },
  };
}

/** One way to give way, by a number: at 0 all of it is gone, at the most nothing is. */
interface Step {
  readonly most: number;
  keptAt(number: number): KeptSections;
}

/** First items give way, then headings: of the sections without discoveries, while discoveries are whole; then of discoveries, when
 *  nothing else is left. */
function stepsOf(sectioned: SectionedText): Step[] {
  const { sections } = sectioned;
  const discoveries = sections.filter(({ isDiscovery }) => isDiscovery);
  const others = sections.filter(({ isDiscovery }) => !isDiscovery);
  const bare = (section: Section): number => itemsWithin(sectioned, section, 0);
  const bareOther = (section: Section): number =>
    section.isDiscovery ? section.itemStarts.length : bare(section);
  /** Costs as much as it gives: of sections there may be a million. */
  const withOthers = (count: number): readonly Section[] => {
    const next = others[count];
    if (next === undefined) return sections;
    return [...sections.slice(0, next.index), ...discoveries.slice(next.index - next.place)];
  };
  return [
    itemsStep(sectioned, { group: others, shown: sections }),
    { most: others.length, keptAt: (headings) => ({ sections: withOthers(headings), itemsOf: bareOther }) },
    itemsStep(sectioned, { group: discoveries, shown: discoveries }),
    {
      most: discoveries.length,
      keptAt: (headings) => ({ sections: discoveries.slice(0, headings), itemsOf: bare }),
    },
  ];
}

interface Group {
  readonly group: readonly Section[];
  readonly shown: readonly Section[];
}

/** By characters, the same for every section of the group, so that the longest is always the next to give way; of equals, the last one. */
function itemsStep(sectioned: SectionedText, { group, shown }: Group): Step {
  const longest = group.reduce((most, { start, end }) => Math.max(most, end - start), 0);
  const gives = group[0]?.isDiscovery;
  return {
    most: longest * group.length,
    keptAt: (characters) => ({
      sections: shown,
      itemsOf(section) {
        if (section.isDiscovery !== gives) return section.itemStarts.length;
        return itemsWithin(sectioned, section, Math.ceil((characters - section.place) / group.length));
      },
    }),
  };
}

interface Limit {
  readonly counter: Counter;
  readonly limit: number;
}

/** In characters. A few letters tell nothing. */
const leastBeginning = 40;

/** Where not one item fits, the beginning of the first says more than that there is one. It still counts as omitted. */
function withFirstItem(
  { text, bare }: RenderedSections,
  { sectioned, counter, limit }: Limit & { readonly sectioned: SectionedText },
): string {
  if (bare === undefined) return text;
  const [start, end = bare.section.end] = bare.section.itemStarts;
  const item = sectioned.text.slice(start, end).trim();
  const around = { opening: text.slice(0, bare.at), ending: `\n${text.slice(bare.at)}` };
  const cut = truncateText(item, { counter, limit, ...around });
  // What is whole must not be told of as omitted.
  return cut.kept < leastBeginning || cut.kept === item.length ? text : cut.text;
}
