export { blockHash } from "./blocks/block-markers.ts";
export { fromByteString, toByteString } from "./blocks/byte-string.ts";
export {
  type BlockSearch,
  findBlock,
  foreignSections,
  type MarkedBlock,
  putBlock,
  removeBlock,
} from "./blocks/marked-block.ts";
export { type Ownership, readOwnership, renderOwnedFile } from "./blocks/owned-file.ts";
export { didYouMean } from "./closest.ts";
export {
  type FetchFormat,
  type FetchMarker,
  type FoundMarkers,
  findFetchMarkers,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "./fetched/fetch-markers.ts";
export { type FittedText, type ForeignLimits, fitForeignText } from "./fetched/fit-foreign-text.ts";
export { type TruncatedText, truncateBytes } from "./fetched/truncate-bytes.ts";
export { type Line, type LineKind, scanLines } from "./markdown/fences.ts";
export { toPlainProse } from "./markdown/plain-prose.ts";
export {
  type ParsedSegments,
  parseSegments,
  type Segment,
  type SegmentWarning,
  type Tier,
  textAt,
  tiers,
  tiersAt,
  type Verbosity,
  verbosities,
} from "./markdown/verbosity.ts";
export { printable, printableLines } from "./printable.ts";

/** Only fetched pages need it, so nothing else loads it. */
export function loadHtmlConverter(): Promise<typeof import("./html/convert-html.ts")> {
  return import("./html/convert-html.ts");
}
