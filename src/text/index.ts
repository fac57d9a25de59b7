export { fromByteString, toByteString } from "./blocks/byte-string.ts";
export {
  adoptBlock,
  findBlock,
  putBlock,
  removeBlock,
  removeWholeBlocks,
} from "./blocks/marked-block.ts";
export { readOwnership, renderOwnedFile } from "./blocks/owned-file.ts";
export { didYouMean } from "./closest.ts";
export { type CutText, cutText } from "./cut-text.ts";
export { expandBraces } from "./expand-braces.ts";
export {
  type FetchFormat,
  type FetchMarker,
  findFetchMarkers,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "./fetched/fetch-markers.ts";
export { fitForeignText } from "./fetched/fit-foreign-text.ts";
export { truncateBytes } from "./fetched/truncate-bytes.ts";
export { countNoun, formatNumber } from "./format-number.ts";
export { createGlob, type Glob } from "./glob.ts";
export {
  type Check,
  isFields,
  isNumber,
  isSwitch,
  isText,
  isTime,
  isWhole,
  listOf,
  mapOf,
  objectOf,
  pairOf,
  readJson,
} from "./json/json-shape.ts";
export {
  applyEdits,
  elementsOf,
  hasLongNumbers,
  type JsonEdit,
  type JsonMember,
  type JsonRange,
  memberOf,
  membersOf,
  valuesFrom,
} from "./json/json-text.ts";
export { closeFence, withoutBareFence } from "./markdown/close-fence.ts";
export { closes, fenceAt } from "./markdown/fence-at.ts";
export { type Line, type LineKind, scanLines } from "./markdown/fences.ts";
export { importedNames } from "./markdown/imported-names.ts";
export { toPlainProse } from "./markdown/plain-prose.ts";
export {
  firstWarnings,
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
export { messageOf } from "./message-of.ts";
export { namedKey } from "./named-key.ts";
export { printable, printableLines } from "./printable.ts";
export { isSecretName, redactSecrets, secretGlobs } from "./secrets.ts";
export { shorten } from "./shorten.ts";
export { characterStart, isInsidePair, wellFormed } from "./surrogates.ts";
export { tomlStringEnd } from "./toml/toml-string-end.ts";

/** Only fetched pages need it, so nothing else loads it. */
export function loadHtmlConverter(): Promise<typeof import("./html/convert-html.ts")> {
  return import("./html/convert-html.ts");
}
