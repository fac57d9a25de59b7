/**
 * A process that changes a file: node file-changer.mjs ROOT PATH JOB [COUNT]. It prints a line for every change that was
 * acknowledged, straight to the descriptor, so that a line the parent reads was printed after the write.
 */
import { writeSync } from "node:fs";
import { changeFile } from "../../dist/host/index.js";
import { markedBlock } from "../../dist/rules/files/marked-block.js";

const [root, path, job, count = "Infinity"] = process.argv.slice(2);
const say = (line) => writeSync(1, `${line}\n`);
const jobs = { rewrite, put, append };
await jobs[job]();

/** Endless new versions of the block; the large ones make the writing take its time. */
async function rewrite() {
  for (let index = 0; index < Number(count); index += 1) {
    const body = `${index}\n`.repeat(index % 3 === 0 ? 100_000 : 10);
    await changeFile(path, { root, change: (file) => markedBlock.put(file, "context", body) });
    say(index);
  }
}

async function put() {
  const { written } = await changeFile(path, {
    root,
    change: (file) => markedBlock.put(file, "context", "Same.\n"),
  });
  say(written);
}

/** Each change builds on the one before, so a lost one is seen. */
async function append() {
  for (let index = 0; index < Number(count); index += 1) {
    await changeFile(path, { root, change: addLine(`${process.pid}:${index}\n`) });
  }
}

function addLine(line) {
  return (file) => {
    const search = file === undefined ? { kind: "none" } : markedBlock.find(file, "context");
    return markedBlock.put(file, "context", (search.kind === "block" ? search.block.body : "") + line);
  };
}
