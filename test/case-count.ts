/** Returns how many cases a test tries: `few` in `npm test`, `deep` in `npm run test:deep`, which CI runs, and `long` in
 *  `PLIMSOLL_LONG=1 npm run test:deep`, which is run by hand. For tests whose long run takes more than half a minute. */
export function caseCount({ few, deep, long }: CaseCounts): number {
  if (process.env.PLIMSOLL_DEEP !== "1") return few;
  return process.env.PLIMSOLL_LONG === "1" ? long : deep;
}

interface CaseCounts {
  readonly few: number;
  readonly deep: number;
  readonly long: number;
}
