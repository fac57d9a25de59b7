/** Times a built counter on 1 MB of one thing each: prints `{ run: milliseconds of processor time }`, the least of as many tries as it
 *  takes to get below the limit, for four seconds at most: other tests share the processor. Arguments: counter, limit. */
import { createCounter } from "../../dist/core/tokens/index.js";

let seed = 7;
const random = (below) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % below;
};
const draw = (characters, length) => Array.from({ length }, () => characters[random(characters.length)]).join("");
const letters = "abcdefghijklmnopqrstuvwxyz";
const base64 = `${letters}${letters.toUpperCase()}0123456789+/`;

const runs = {
  "the letter a": "a".repeat(1_000_000),
  spaces: " ".repeat(1_000_000),
  "line breaks": "\n".repeat(1_000_000),
  "one emoji": "😀".repeat(250_000),
  base64: draw(base64, 1_000_000),
  "one Han character": "漢".repeat(333_333),
};
/** Where bytes are merged, it takes long what has many pairs, or few that are alike. */
const mixtures = {
  "Han characters": draw(String.fromCharCode(...Array.from({ length: 5_000 }, (_, at) => 0x4e00 + at)), 333_333),
  letters: draw(letters, 1_000_000),
  "spaces and tabs": draw(" \t", 1_000_000),
};

const [name, limit] = [process.argv[2], Number(process.argv[3])];
const counter = await createCounter(name);

function timeOf(text) {
  const start = process.cpuUsage();
  counter.count(text);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

const result = {};
const all = name.startsWith("exact") ? { ...runs, ...mixtures } : runs;
for (const [run, text] of Object.entries(all)) {
  let [least, spent] = [Number.POSITIVE_INFINITY, 0];
  while (least > limit && spent < 4_000) {
    const ms = timeOf(text);
    [least, spent] = [Math.min(least, ms), spent + ms];
  }
  result[run] = least;
}
console.log(JSON.stringify(result));
