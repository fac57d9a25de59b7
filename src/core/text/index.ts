export { fromByteString, toByteString } from "./byte-string.ts";
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
  type Fence,
  fenceAt,
  forEachLine,
  importedNames,
  type Line,
  type LineKind,
  scanLines,
  withoutBareFence,
} from "./fences.ts";
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
export { problemWithWindow, readAge, wholeNumber } from "./whole-number.ts";
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
