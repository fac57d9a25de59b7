/** Questions for a person at a terminal. */
import { createInterface } from "node:readline";
import type { Output } from "../host/index.ts";

/** Asks one question at a time; other questions wait. Only y and yes mean yes. */
export type Ask = (question: string) => Promise<boolean>;

/** `words` returns the answer as it is. */
export type Questions = Ask & { words(question: string): Promise<string> };

export interface QuestionOptions {
  readonly stdin: NodeJS.ReadableStream;
  readonly output: Pick<Output, "problem">;
  /** After it aborts, every answer is no. */
  readonly signal: AbortSignal;
  /** Called when a question starts and ends. */
  onAsking(isAsking: boolean): void;
}

export function createQuestions({ stdin, output, signal, onAsking }: QuestionOptions): Questions {
  const askNow = async (question: string) => {
    if (signal.aborted) return "";
    onAsking(true);
    output.problem(question);
    try {
      return (await readLine(stdin, signal)).trim();
    } finally {
      onAsking(false);
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  const words = (question: string) => {
    const answer = last.then(() => askNow(question));
    last = answer;
    return answer;
  };
  const ask = async (question: string) => /^y(es)?$/i.test(await words(`${question} [y/N]`));
  return Object.assign(ask, { words });
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
