/** Entities that documentation uses; the full list of HTML has 2,231 names. What is not here stays as it is written. */
const named: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{
      amp: "&",
      lt: "<",
      gt: ">",
      quot: '"',
      apos: "'",
      nbsp: " ",
      shy: "",
      ensp: " ",
      emsp: " ",
      thinsp: " ",
    },
    ...{ ndash: "–", mdash: "—", hellip: "…", bull: "•", middot: "·", lsquo: "‘", rsquo: "’", sbquo: "‚" },
    ...{ ldquo: "“", rdquo: "”", bdquo: "„", laquo: "«", raquo: "»", lsaquo: "‹", rsaquo: "›", prime: "′" },
    ...{
      copy: "©",
      reg: "®",
      trade: "™",
      deg: "°",
      sect: "§",
      para: "¶",
      dagger: "†",
      euro: "€",
      pound: "£",
    },
    ...{ yen: "¥", cent: "¢", times: "×", divide: "÷", plusmn: "±", minus: "−", frac12: "½", frac14: "¼" },
    ...{ frac34: "¾", sup2: "²", sup3: "³", micro: "µ", ne: "≠", le: "≤", ge: "≥", infin: "∞", radic: "√" },
    ...{
      larr: "←",
      uarr: "↑",
      rarr: "→",
      darr: "↓",
      harr: "↔",
      rArr: "⇒",
      lArr: "⇐",
      check: "✓",
      cross: "✗",
    },
    ...{
      auml: "ä",
      ouml: "ö",
      uuml: "ü",
      Auml: "Ä",
      Ouml: "Ö",
      Uuml: "Ü",
      szlig: "ß",
      eacute: "é",
      egrave: "è",
    },
    ...{ ecirc: "ê", agrave: "à", aacute: "á", acirc: "â", aring: "å", Aring: "Å", aelig: "æ", oslash: "ø" },
    ...{
      ccedil: "ç",
      ntilde: "ñ",
      iacute: "í",
      oacute: "ó",
      ocirc: "ô",
      uacute: "ú",
      Eacute: "É",
      zwj: "\u200d",
    },
    ...{
      lbrace: "{",
      rbrace: "}",
      lbrack: "[",
      rbrack: "]",
      lpar: "(",
      rpar: ")",
      vert: "|",
      num: "#",
      ast: "*",
    },
    ...{
      lowbar: "_",
      grave: "`",
      bsol: "\\",
      sol: "/",
      colon: ":",
      comma: ",",
      period: ".",
      equals: "=",
      commat: "@",
    },
    ...{ excl: "!", quest: "?", dollar: "$", percnt: "%", plus: "+", semi: ";", Tab: "\t", NewLine: "\n" },
  }),
);

export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#x([\da-f]{1,6})|#(\d{1,7})|([a-z][a-z\d]{1,31}));/gi,
    (written, hex, decimal, name) => {
      if (name !== undefined) return named.get(name) ?? written;
      return characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    },
  );
}

/** What is no character, half of one or a control character becomes the replacement character, as in a browser. */
function characterOf(code: number): string {
  const isControl = code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d;
  if (code === 0xa0) return " ";
  return isControl || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
    ? "\ufffd"
    : String.fromCodePoint(code);
}
