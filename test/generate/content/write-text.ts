/** Texts of a wanted size that tokenize like what agents read: code, logs, prose. Few lines come twice, so that repetition is the session's own. */
import type { Random } from "./random.ts";

/** Characters a token of o200k, measured on these texts (2026-11). */
const charactersPerToken = { code: 3.7, log: 2.6, prose: 4.3 } as const;
export type TextKind = keyof typeof charactersPerToken;

/** About `tokens` tokens of one kind. */
export function writeText(random: Random, kind: TextKind, tokens: number): string {
  return writeLines(random, kind, tokens).join(kind === "prose" ? " " : "\n");
}

export function writeLines(random: Random, kind: TextKind, tokens: number): string[] {
  const lines: string[] = [];
  const write = writers[kind];
  for (let left = tokens * charactersPerToken[kind]; left > 0; ) {
    const line = write(random);
    lines.push(line);
    left -= line.length + 1;
  }
  return lines;
}

/** Text that only a provider can read. */
export function writeSealed(random: Random, characters: number): string {
  let text = "";
  while (text.length < characters) text += alphabet[random.whole(0, 63)];
  return text;
}

export function writeName(random: Random): string {
  const noun = random.pick(nouns);
  return `${random.pick(verbs)}${noun.charAt(0).toUpperCase()}${noun.slice(1)}`;
}

export function writePath(random: Random): string {
  return `src/${random.pick(nouns)}/${random.pick(verbs)}-${random.pick(nouns)}.ts`;
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const verbs = words(`read write open close merge split parse render count send fetch store load check build drain order
  trace plan settle widen narrow rotate replay attach detach resolve collect publish retry encode decode`);
const nouns = words(`queue cursor ledger harbour anchor cargo manifest route berth signal buffer channel tariff crane
  voyage depth keel winch beacon chart port hull deck tide pilot fleet mast freight quay sluice compass draft`);
const qualities = words("stale empty narrow late double missing broken slow early large frozen shared local idle");

const writers: Readonly<Record<TextKind, (random: Random) => string>> = {
  code: writeCode,
  log: writeLog,
  prose: writeSentence,
};

function writeCode(random: Random): string {
  const [name, other] = [writeName(random), writeName(random)];
  const [noun, field] = [random.pick(nouns), random.pick(nouns)];
  const indent = "  ".repeat(random.whole(0, 3));
  const number = random.whole(0, 5000);
  const line = random.pick([
    `const ${noun} = await ${name}(${field}, { ${random.pick(nouns)}: ${number} });`,
    `if (${noun}.${field} > ${number}) return ${name}(${noun});`,
    `export function ${name}(${noun}: ${title(field)}): ${title(random.pick(nouns))} {`,
    `// The ${field} is ${random.pick(qualities)} until ${other} has run.`,
    `throw new Error(\`${noun} \${${field}.id} is ${random.pick(qualities)}: ${number}\`);`,
    `${noun}.${field} = ${other}(${name}(${random.pick(nouns)}), "${random.pick(qualities)}");`,
    `expect(${name}(${noun})).toEqual({ ${field}: ${number} });`,
    "}",
  ]);
  return indent + line;
}

function writeLog(random: Random): string {
  const path = writePath(random);
  const [noun, number] = [random.pick(nouns), random.whole(1, 9999)];
  return random.pick([
    ` ✓ ${path} (${random.whole(1, 60)} tests) ${number}ms`,
    `${path}:${number}: ${noun} is ${random.pick(qualities)}`,
    `2026-03-0${random.whole(1, 9)}T1${random.whole(0, 9)}:${random.whole(10, 59)}:${random.whole(10, 59)}Z INFO ${noun} ${writeName(random)} took ${number} ms`,
    `    at ${writeName(random)} (${path}:${number}:${random.whole(1, 80)})`,
    `${hex(random, 9)} ${random.pick(verbs)} the ${random.pick(qualities)} ${noun}`,
    `-rw-r--r-- 1 dev dev ${number} Mar  ${random.whole(1, 9)} 1${random.whole(0, 9)}:${random.whole(10, 59)} ${path}`,
  ]);
}

function writeSentence(random: Random): string {
  const [one, two] = [random.pick(nouns), random.pick(nouns)];
  const quality = random.pick(qualities);
  return random.pick([
    `The ${one} is ${quality} because ${writeName(random)} runs before the ${two} is ready.`,
    `I will ${random.pick(verbs)} the ${one} first and then look at the ${quality} ${two}.`,
    `That ${one} belongs to the ${two}, so \`${writePath(random)}\` has to change as well.`,
    `Please ${random.pick(verbs)} every ${quality} ${one} and keep the ${two} as it was.`,
    `The tests for the ${quality} ${one} pass now; the ${two} still needs ${random.whole(2, 12)} changes.`,
    `We could ${random.pick(verbs)} the ${one}, but a ${quality} ${two} would then be lost.`,
  ]);
}

function title(noun: string): string {
  return noun.charAt(0).toUpperCase() + noun.slice(1);
}

function hex(random: Random, digits: number): string {
  return Array.from({ length: digits }, () => random.whole(0, 15).toString(16)).join("");
}

function words(text: string): readonly string[] {
  return text.split(/\s+/);
}
