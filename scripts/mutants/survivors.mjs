/** Mutants that no test can notice, each with the reason. `npm run test:mutants` prints `original` and `replacement`. */
export const survivors = [];
