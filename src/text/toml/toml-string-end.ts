/** Where the TOML string ends whose first quote is at `start`; the end of the text if it never does. */
export function tomlStringEnd(text: string, start: number): number {
  const quote = text[start]!;
  const isLong = text.startsWith(quote.repeat(3), start);
  const closing = isLong ? quote.repeat(3) : quote;
  for (let at = start + closing.length; at < text.length; at++) {
    if (text[at] === "\\" && quote === '"') at++;
    // A long string may end in one or two quotes of its own.
    else if (text.startsWith(closing, at)) return isLong ? quotesEnd(text, at) : at + 1;
  }
  return text.length;
}

function quotesEnd(text: string, start: number): number {
  let end = start + 3;
  while (end < start + 5 && text[end] === text[start]) end++;
  return end;
}
