export {
  type ArgumentCheck,
  argumentChecks,
  checkKeys,
  checkOptions,
  isAmount,
  type OptionChecks,
  refuseUnknownOptions,
  refuseValue,
} from "./check-arguments.ts";
export { codeLanguage } from "./code-language.ts";
export {
  closeFence,
  closes,
  fenceAt,
  importedNames,
  type Line,
  type LineKind,
  scanLines,
  withoutBareFence,
} from "./fences.ts";
export {
  type FetchFormat,
  type FetchMarker,
  findFetchMarkers,
  headingsBelow,
  type ReplacedMarkers,
  replaceFetchMarkers,
} from "./fetch-markers.ts";
export { fitForeignText } from "./foreign-text.ts";
export { createGlob, expandBraces, type Glob } from "./glob.ts";
export {
  type Fields,
  isFields,
  isNumber,
  isPlainObject,
  isText,
  isTime,
  isWhole,
  listOf,
  mapOf,
  objectOf,
  pairOf,
  readJson,
  type ShapeCheck,
} from "./json-shape.ts";
export {
  applyEdits,
  elementsOf,
  hasLongNumbers,
  type JsonEdit,
  type JsonMember,
  type JsonRange,
  jsonStringEnd,
  memberOf,
  membersOf,
  valuesFrom,
} from "./json-text.ts";
export {
  createHashKey,
  createKeyedHash,
  digestText,
  type HashSequence,
  hashLength,
  isHashKey,
  type KeyedHash,
} from "./keyed-hash.ts";
export { countLineParts, joinLines, type LinePart, mostLineCharacters, splitLines, splitLong } from "./long-lines.ts";

export { visitNames } from "./names.ts";
export { createMark, createOriginalId, isOriginalId, markPattern, originalIdPattern } from "./original-ids.ts";

export { redactSecrets } from "./redact-secrets.ts";
export { createSecretTest, isSecretName, type SecretRules, type SecretTest } from "./secret-names.ts";
export { findTomlLines, parseTomlKey, scanToml, type TomlPart, tomlString } from "./toml-text.ts";
export {
  parseSegments,
  type Segment,
  type Tier,
  textAt,
  tiers,
  tiersAt,
  type Verbosity,
  verbosities,
} from "./verbosity.ts";
export {
  type CutText,
  characterStart,
  closest,
  compareText,
  countNoun,
  cutText,
  didYouMean,
  firstWarnings,
  formatNumber,
  isInsidePair,
  type LineWarning,
  matchEnd,
  messageOf,
  namedKey,
  oneLine,
  printable,
  printableJson,
  printableLines,
  shorten,
  shownTime,
  truncateBytes,
  type UnknownName,
  unknownName,
  wellFormed,
  withoutLeadingBlankLines,
} from "./wording.ts";

/** Loads the HTML converter. Only fetched pages need it. */
export function loadHtmlConverter(): Promise<typeof import("./convert-html.ts")> {
  return import("./convert-html.ts");
}
export { fromByteString, toByteString } from "./byte-string.ts";
export { type Fence, forEachLine } from "./fences.ts";
export { problemWithWindow, readAge, wholeNumber } from "./whole-number.ts";
