export { blockHash } from "./block-markers.ts";
export { fromByteString, toByteString } from "./byte-string.ts";
export { didYouMean } from "./closest.ts";
export { type Line, type LineKind, scanLines } from "./fences.ts";
export {
  type FetchFormat,
  type FetchMarker,
  type FoundMarkers,
  findFetchMarkers,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "./fetch-markers.ts";
export { type FittedText, type ForeignLimits, fitForeignText } from "./fit-foreign-text.ts";
export {
  type BlockSearch,
  findBlock,
  foreignSections,
  type MarkedBlock,
  putBlock,
  removeBlock,
} from "./marked-block.ts";
export { type Ownership, readOwnership, renderOwnedFile } from "./owned-file.ts";
export { toPlainProse } from "./plain-prose.ts";
export { printable, printableLines } from "./printable.ts";
export { type TruncatedText, truncateBytes } from "./truncate-bytes.ts";
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
} from "./verbosity.ts";

/** Only fetched pages need it, so nothing else loads it. */
export function loadHtmlConverter(): Promise<typeof import("./html/convert-html.ts")> {
  return import("./html/convert-html.ts");
}
