import { createInterface } from "node:readline";
import type { Output } from "../output.ts";

export interface Questions {
  /** One question at a time; whoever asks meanwhile waits. Anything but y or yes is a no. */
  ask(question: string): Promise<boolean>;
}

export interface QuestionOptions {
  readonly stdin: NodeJS.ReadableStream;
  readonly output: Pick<Output, "problem">;
  /** After it no question is asked, and one that is open is a no. */
  readonly signal: AbortSignal;
  /** Told when a question begins and ends. */
  onAsking(isAsking: boolean): void;
}

export function createQuestions(options: QuestionOptions): Questions {
  let last: Promise<unknown> = Promise.resolve();
  return {
    ask(question) {
      const answer = last.then(() => (options.signal.aborted ? false : askOne(question, options)));
      last = answer;
      return answer;
    },
  };
}

async function askOne(
  question: string,
  { stdin, output, signal, onAsking }: QuestionOptions,
): Promise<boolean> {
  onAsking(true);
  output.problem(`${question} [y/N]`);
  try {
    return /^\s*y(es)?\s*$/i.test(await readLine(stdin, signal));
  } finally {
    onAsking(false);
  }
}

/** Not as a terminal: that would take Ctrl-C away from the command. */
function readLine(stdin: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  const reader = createInterface({ input: stdin, terminal: false });
  return new Promise((resolve) => {
    const end = () => reader.close();
    signal.addEventListener("abort", end, { once: true });
    reader.once("close", () => {
      signal.removeEventListener("abort", end);
      resolve("");
    });
    reader.once("line", (line) => {
      resolve(line);
      reader.close();
    });
  });
}
