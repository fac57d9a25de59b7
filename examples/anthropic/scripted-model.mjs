/** The model of the examples: asks for one file after the other, then is done. The provider behind it does what the real API does: it
 *  refuses a request that is too long, bills with a prompt cache, and signs the model's thinking over everything before it. */
import { createCounter } from "plimsoll/tokens";
import { createProvider } from "../../scripts/provider/provider.mjs";

export async function scriptedModel({ model, contextWindow, files }) {
  const { count } = await createCounter("auto", { model });
  const { fetch, calls } = createProvider({
    contextWindow,
    run: "example",
    count,
    answer: ({ number }) =>
      number > files
        ? { text: "The bug is in src/file-7.ts." }
        : { calls: [{ name: "read_file", input: { path: `src/file-${number}.ts` } }] },
  });
  const answered = () => calls.filter(({ status }) => status === 200);
  const sizeOf = ({ uncached, write5m, write1h, read }) => uncached + write5m + write1h + read;
  return {
    fetch,
    sizes: () => answered().map(({ tokens }) => sizeOf(tokens)),
    requests: () => answered().map(({ body }) => body.messages),
  };
}
