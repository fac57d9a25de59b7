/** Questions for a person at a terminal. */
import { createInterface } from "node:readline";
import type { Output } from "../host/index.ts";

export interface Questions {
  /** Asks one question at a time; other questions wait. Only y and yes mean yes. */
  ask(question: string): Promise<boolean>;
}

export interface QuestionOptions {
  readonly stdin: NodeJS.ReadableStream;
  readonly output: Pick<Output, "problem">;
  /** After it aborts, every answer is no. */
  readonly signal: AbortSignal;
  /** Called when a question starts and ends. */
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

async function askOne(question: string, { stdin, output, signal, onAsking }: QuestionOptions): Promise<boolean> {
  onAsking(true);
  output.problem(`${question} [y/N]`);
  try {
    return /^\s*y(es)?\s*$/i.test(await readLine(stdin, signal));
  } finally {
    onAsking(false);
  }
}

/** Asks for a line of text. Returns an empty text if the input ends. */
export async function askText(
  question: string,
  { stdin, output }: Pick<QuestionOptions, "stdin" | "output">,
): Promise<string> {
  output.problem(question);
  return (await readLine(stdin, new AbortController().signal)).trim();
}

/** Does not use terminal mode, which would take Ctrl-C away from the command. */
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
