/** Times the built counters on 1 MB of one thing each: prints `{ counter: { run: best } }` in milliseconds of processor time. */
import { createCounter } from "../../dist/tokens/index.js";

let seed = 7;
const bytes = Uint8Array.from({ length: 750_000 }, () => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return seed >>> 24;
});
const runs = {
  "the letter a": "a".repeat(1_000_000),
  spaces: " ".repeat(1_000_000),
  "line breaks": "\n".repeat(1_000_000),
  "one emoji": "😀".repeat(250_000),
  base64: Buffer.from(bytes).toString("base64"),
  "one Han character": "漢".repeat(333_333),
};

const result = {};
for (const name of process.argv.slice(2)) {
  const counter = await createCounter(name);
  result[name] = {};
  for (const [run, text] of Object.entries(runs)) {
    const times = Array.from({ length: name.startsWith("exact") ? 3 : 20 }, () => {
      const start = process.cpuUsage();
      counter.count(text);
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1_000;
    });
    result[name][run] = Math.min(...times);
  }
}
console.log(JSON.stringify(result));
