/** What every policy promises, over sessions of any shape and format. */
import fc from "fast-check";
import { it } from "vitest";
import type { FormatName } from "../../../core/messages/index.ts";
import type { TrimmerOptions } from "../trimmer-options.ts";
import { expectFit } from "./fit.contract.ts";
import type { PolicyName } from "./policy.ts";
import { type Promises, promises } from "./policy-promises.contract.ts";
import { type PolicyCase, runPolicy, type Step } from "./policy-run.contract.ts";

export interface ContractOptions {
  readonly numRuns: number;
  readonly cases: (format: FormatName) => fc.Arbitrary<PolicyCase>;
}

export function testPolicy(policy: PolicyName, format: FormatName, { numRuns, cases }: ContractOptions): void {
  const isRfc = policy === "rfc" || policy === "rfc-headroom";
  // The RFC has its own threshold and estimator, and reports when the threshold cannot be met.
  const kept: Promises = isRfc ? promises : { ...promises, "the window is hard": expectFit };
  it(`${policy} keeps its promises over sessions in the ${format} format`, {
    timeout: 30_000 + 500 * numRuns,
  }, async () => {
    const check = async (policyCase: PolicyCase) => {
      const settings: TrimmerOptions = { ...policyCase.options, ...(isRfc && rfcOptions), policy, format };
      const steps = await runPolicy(settings, policyCase);
      for (const [index, step] of steps.entries()) await checkStep(kept, step, steps[index - 1]);
    };
    await fc.assert(fc.asyncProperty(cases(format), check), { numRuns });
  });
}

/** Options that the rfc policies reject. */
const rfcOptions = { excludeTools: undefined, isPinned: undefined, placeholders: undefined } as const;

/** Reports which promise was broken, and in which call. */
async function checkStep(kept: Promises, step: Step, before: Step | undefined): Promise<void> {
  for (const [name, check] of Object.entries(kept)) {
    try {
      await check(step, before);
    } catch (cause) {
      const { message } = cause as Error;
      throw new Error(`broken in the call of ${step.input.length} messages: ${name}: ${message}`, { cause });
    }
  }
}
