/** Relative errors of estimates, in percent. */

export interface Accuracy {
  /** Mean of the signed errors. */
  readonly bias: number;
  /** Mean of the absolute errors. */
  readonly mean: number;
  readonly p95: number;
}

export function accuracyOf(errors: readonly number[]): Accuracy {
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return {
    bias: (100 * sum(errors)) / errors.length,
    mean: (100 * sum(sizes)) / errors.length,
    p95: 100 * sizes[Math.min(sizes.length - 1, Math.ceil(0.95 * sizes.length) - 1)]!,
  };
}

/** Errors of whole contexts: sums over 40 texts drawn by a fixed generator, 500 times. */
export function contextErrors(estimated: readonly number[], actual: readonly number[]): number[] {
  let seed = 12345;
  const draw = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return Math.floor((seed / 2 ** 32) * actual.length);
  };
  return Array.from({ length: 500 }, () => {
    let estimate = 0;
    let truth = 0;
    for (let text = 0; text < 40; text++) {
      const index = draw();
      estimate += estimated[index]!;
      truth += actual[index]!;
    }
    return estimate / truth - 1;
  });
}
