import type { Store } from "../../../../store/index.ts";

const collection = "nebula-answers";

export interface AnswerPlace {
  /** The nebula's. */
  readonly key: string;
  readonly phase: string;
}

/** Keeps what the agent of a phase answered: those who depend on the phase are told. */
export async function keepAnswer(
  store: Pick<Store, "put">,
  { key, phase }: AnswerPlace,
  answer: string,
): Promise<void> {
  await store.put(collection, `${key}/${phase}`, answer);
}

/** What the phase answered last, whole: in an earlier run, where it has not completed in the last one. */
export async function readAnswer(
  store: Pick<Store, "get">,
  { key, phase }: AnswerPlace,
): Promise<string | undefined> {
  return (await store.get(collection, `${key}/${phase}`))?.value;
}

export async function dropAnswer(store: Pick<Store, "delete">, { key, phase }: AnswerPlace): Promise<void> {
  await store.delete(collection, `${key}/${phase}`);
}
