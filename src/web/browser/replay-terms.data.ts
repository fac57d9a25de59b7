/** The columns of the page of `replay`, in words. */
export const terms: readonly (readonly [term: string, meaning: string])[] = [
  ["cost", "input cost, as full-price tokens: tokens read from the prompt cache count less, tokens written to it a little more"],
  ["$", "the same in dollars"],
  ["recorded", "what the client recorded, to compare with the simulated cost; its dollars include the output. A dashed line, if each call has an answer"],
  ["\u00d7 none", "that cost as a multiple of sending the whole history each time"],
  ["breaks", "calls that read less from the cache than the previous call left there"],
  ["epoch", "a call on which the policy rewrote earlier messages; marked above the timeline"],
  ["over", "calls larger than the window without the reserve; red below the timeline"],
  ["invalid", "calls whose request the provider would refuse"],
  ["kept", "mean share of the history that the model can still read"],
  ["quotes", "lines of earlier results that the next turn repeats: the share that was still in the request"],
  ["names far", "names last seen 10 turns earlier or more that the next turn uses: the share that was still in the request"],
  ["edits", "texts that the next turn replaces: the share whose lines were all still in the request"],
  ["re-fetch/100", "results that a model would have had to read again for its quotes, in a hundred calls"],
  ["ms/turn", "time that the policy took to decide, on the machine that made this page"],
];
