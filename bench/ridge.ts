/** Least absolute relative error by iteratively re-weighted ridge regression, pulled towards a prior. Plain arithmetic in a fixed order:
 *  the same rows give the same coefficients. */

export interface Row {
  readonly features: Float64Array;
  readonly tokens: number;
  /** How much this row counts beside the others. */
  readonly weight: number;
}

export interface RidgeOptions {
  readonly prior: Float64Array;
  /** Pull towards the prior, a number a coefficient. */
  readonly pull: Float64Array;
  /** Coefficients that must not fall below zero. */
  readonly nonNegative: readonly number[];
  readonly passes?: number;
}

/** Errors below this share count as equal: it keeps one near-perfect row from taking all the weight. */
const SMALLEST_ERROR = 0.02;
/** Strong enough to hold a coefficient at zero. */
const HELD_PULL = 1e6;

export function fitRidge(rows: readonly Row[], { passes = 8, ...options }: RidgeOptions): Float64Array {
  const scaled = rows.map(({ features, tokens }) => features.map((value) => value / tokens));
  const totalWeight = rows.reduce((sum, row) => sum + row.weight, 0);
  let weights = rows.map((row) => row.weight / totalWeight);
  let coefficients = options.prior;
  for (let pass = 0; pass < passes; pass++) {
    coefficients = solveNonNegative(scaled, weights, options);
    weights = scaled.map((features, at) => {
      const error = Math.abs(dot(features, coefficients) - 1);
      return (rows[at]!.weight / totalWeight) * (0.05 / Math.max(SMALLEST_ERROR, error));
    });
  }
  return coefficients;
}

/** What comes out negative is held at zero and the rest solved again, until nothing does. */
function solveNonNegative(
  scaled: readonly Float64Array[],
  weights: readonly number[],
  { prior, pull, nonNegative }: RidgeOptions,
): Float64Array {
  const heldPrior = Float64Array.from(prior);
  const heldPull = Float64Array.from(pull);
  for (;;) {
    const coefficients = solve(scaled, weights, heldPrior, heldPull);
    const negative = nonNegative.filter((at) => coefficients[at]! < -1e-6);
    if (negative.length === 0) return coefficients;
    for (const at of negative) {
      heldPrior[at] = 0;
      heldPull[at] = HELD_PULL;
    }
  }
}

export function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < left.length; at++) sum += left[at]! * right[at]!;
  return sum;
}

/** Solves the normal equations of `features · b = 1` by Cholesky's method. */
function solve(
  scaled: readonly Float64Array[],
  weights: readonly number[],
  prior: Float64Array,
  pull: Float64Array,
): Float64Array {
  const size = prior.length;
  const matrix = Array.from({ length: size }, () => new Float64Array(size));
  const right = new Float64Array(size);
  scaled.forEach((features, row) => {
    const used: number[] = [];
    for (let at = 0; at < size; at++) if (features[at] !== 0) used.push(at);
    for (const at of used) {
      const weighted = weights[row]! * features[at]!;
      right[at]! += weighted;
      for (const other of used) {
        if (other > at) break;
        matrix[at]![other]! += weighted * features[other]!;
      }
    }
  });
  for (let at = 0; at < size; at++) {
    matrix[at]![at]! += pull[at]!;
    right[at]! += pull[at]! * prior[at]!;
  }
  return substitute(matrix, right);
}

function substitute(matrix: Float64Array[], right: Float64Array): Float64Array {
  const size = right.length;
  const result = Float64Array.from(right);
  for (let row = 0; row < size; row++) {
    const current = matrix[row]!;
    for (let column = 0; column <= row; column++) {
      let sum = current[column]!;
      for (let at = 0; at < column; at++) sum -= current[at]! * matrix[column]![at]!;
      current[column] = column === row ? Math.sqrt(Math.max(sum, 1e-12)) : sum / matrix[column]![column]!;
    }
    let sum = result[row]!;
    for (let at = 0; at < row; at++) sum -= current[at]! * result[at]!;
    result[row] = sum / current[row]!;
  }
  for (let row = size - 1; row >= 0; row--) {
    let sum = result[row]!;
    for (let at = row + 1; at < size; at++) sum -= matrix[at]![row]! * result[at]!;
    result[row] = sum / matrix[row]![row]!;
  }
  return result;
}
