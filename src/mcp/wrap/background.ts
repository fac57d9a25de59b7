/** Work that nobody waits for, done one after the other. */
export interface Background {
  /** Resolves at once, unless so much is waiting that it is better to wait as well. */
  add(work: () => Promise<unknown>): Promise<void>;
  /** When all that was added so far is done. */
  settled(): Promise<void>;
}

const mostWaiting = 100;

export function createBackground(onFailure: (error: unknown) => void): Background {
  let last: Promise<void> = Promise.resolve();
  let waiting = 0;
  return {
    async add(work) {
      waiting += 1;
      last = last
        .then(work)
        .then(() => {}, onFailure)
        .finally(() => {
          waiting -= 1;
        });
      if (waiting > mostWaiting) await last;
    },
    settled: () => last,
  };
}
