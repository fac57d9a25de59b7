import { characterStart } from "./surrogates.ts";

export interface CutText {
  readonly text: string;
  /** Characters that are left out after `text`. */
  readonly omitted: number;
}

/** At most `maxCharacters` of a text (UTF-16 units, as `length` counts), and never half of a surrogate pair: it would come out as U+FFFD. */
export function cutText(text: string, maxCharacters: number): CutText {
  if (text.length <= maxCharacters) return { text, omitted: 0 };
  const end = characterStart(text, maxCharacters);
  return { text: text.slice(0, end), omitted: text.length - end };
}
