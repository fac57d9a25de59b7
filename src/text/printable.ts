// C0 and C1 controls, and the marks that reorder what is shown (Trojan Source, CVE-2021-42574).
const unsafe: RegExp = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const names: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Text on one line that cannot steer a terminal: control characters come out as visible escapes. For names of files above all. */
export function printable(text: string): string {
  return text.replace(unsafe, escapeCharacter);
}

/** As `printable`, but line breaks stay: for messages of several lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0);
  return names[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`);
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, "0");
}
