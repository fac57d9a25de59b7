import type { CallResult, ServerClient } from "./server-client.ts";

export interface Paged {
  readonly milliseconds: number;
  readonly pages: number;
  readonly items: number;
  readonly characters: number;
}

export interface Question {
  readonly tool: string;
  readonly args: object;
  /** The name that the items have in the result. */
  readonly itemsName: string;
  /** What tells an item from all others; where nothing does, they are only counted. */
  keyOf?(item: Readonly<Record<string, unknown>>): string;
}

/** Asks for one page after the other, as a model would, and makes sure that no item came twice. */
export async function pageThrough(client: ServerClient, question: Question): Promise<Paged> {
  const { tool, args, itemsName, keyOf } = question;
  const seen = new Set<string>();
  const sums = { pages: 0, items: 0, characters: 0 };
  const start = performance.now();
  let page: CallResult | undefined = await client.call(tool, args);
  while (page !== undefined) {
    const items = page.data?.[itemsName];
    if (!Array.isArray(items)) throw new Error(`${tool} gave no ${itemsName}`);
    sums.pages += 1;
    sums.items += items.length;
    sums.characters += page.text.length;
    if (keyOf !== undefined) for (const item of items) seen.add(keyOf(item));
    const token: unknown = page.data?.continuation_token;
    page = token === undefined ? undefined : await client.call("next_page", { token });
  }
  if (keyOf !== undefined && seen.size !== sums.items) {
    throw new Error(`${tool}: ${sums.items - seen.size} items came twice`);
  }
  return { ...sums, milliseconds: performance.now() - start };
}

export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
