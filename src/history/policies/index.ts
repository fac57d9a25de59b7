/** Every policy by its name. A further one is one file here, one line below and one call of the contract test. */
import { describePart, type PlaceholderStyle } from "../placeholders.ts";
import { bindsThinking } from "../thinking.ts";
import { createEconomicPolicy } from "./economic.ts";
import type { Policy, PolicyName } from "./policy.ts";
import { createRfcPolicy } from "./rfc.ts";

export interface PolicyOptions {
  readonly keep: number;
  readonly threshold: number;
  readonly model?: string | undefined;
  readonly excludeTools: readonly string[];
  readonly isPinned: (message: object, index: number) => boolean;
  readonly placeholders: PlaceholderStyle;
  readonly trimWhenCold: boolean;
}

export function createPolicy(name: PolicyName, options: PolicyOptions): Policy {
  return policies[name](options);
}

const policies: Readonly<Record<PolicyName, (options: PolicyOptions) => Policy>> = {
  economic: (options) => economic(options, { lowWater: 0.4 }),
  gentle: (options) => economic(options, { lowWater: 0.6 }),
  frugal: (options) =>
    economic({ ...options, keep: Math.min(options.keep, 5) }, { lowWater: 0.2, protectShare: 0.2 }),
  rfc: (options) => rfc(options, { hasHeadroom: false }),
  "rfc-headroom": (options) => rfc(options, { hasHeadroom: true }),
};

function rfc(options: PolicyOptions, { hasHeadroom }: { hasHeadroom: boolean }): Policy {
  return createRfcPolicy({ ...options, bindsThinking: bindsThinking(options.model), hasHeadroom });
}

function economic(options: PolicyOptions, preset: { lowWater: number; protectShare?: number }): Policy {
  return createEconomicPolicy({
    trigger: 0.97,
    coldTrigger: options.trimWhenCold ? 0.6 : 1,
    lowWater: preset.lowWater,
    protect: { turns: options.keep, share: preset.protectShare ?? 0.3 },
    bindsThinking: bindsThinking(options.model),
    excludeTools: new Set(options.excludeTools),
    isPinned: options.isPinned,
    describe: describePart(options.placeholders),
  });
}
