/** The model of the example: asks for one file after the other, then is done. The provider behind it does what the real API does: it
 *  refuses a request that is too long, and bills with a prompt cache. */
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
  const sizes = () =>
    calls.filter(({ status }) => status === 200).map(({ tokens }) => tokens.uncached + tokens.write5m + tokens.read);
  return { fetch, sizes };
}
