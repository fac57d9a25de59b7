/** Every policy by its name. A new one is a file here, a line below, and its name in `policyNames`. */

import { bindsThinking } from "../../../core/messages/index.ts";
import type { Counter } from "../../../core/tokens/index.ts";
import type { PlaceholderStyle } from "../placeholders.ts";
import { createTurnReader } from "../turns.ts";
import { repairEarlierEpochs } from "./bound-thinking.ts";
import { createDigestRenderer } from "./digest.ts";
import { createEconomicPolicy } from "./economic.ts";
import type { ScopeOptions } from "./economic-steps.ts";
import type { Policy, PolicyName } from "./policy.ts";
import { createRfcPolicy } from "./rfc.ts";

export interface PolicyOptions {
  readonly counter: Counter;
  readonly keep: number;
  readonly threshold: number;
  readonly model?: string | undefined;
  readonly excludeTools: readonly string[];
  readonly keepInputs: readonly string[];
  readonly isPinned: (message: object, index: number) => boolean;
  readonly isTrimmable: ScopeOptions["isTrimmable"];
  readonly placeholders: PlaceholderStyle;
  readonly trimWhenCold: boolean;
  /** Set if the caller summarises. */
  readonly summarise?: unknown;
}

export function createPolicy(name: PolicyName, options: PolicyOptions): Policy {
  const policy = policies[name](options);
  return bindsThinking(options.model) ? repairEarlierEpochs(policy) : policy;
}

const policies: Readonly<Record<PolicyName, (options: PolicyOptions) => Policy>> = {
  economic: (options) => economic(options, { lowWater: 0.4 }),
  gentle: (options) => economic(options, { lowWater: 0.6 }),
  frugal: (options) => economic({ ...options, keep: Math.min(options.keep, 5) }, { lowWater: 0.2, protectShare: 0.2 }),
  rfc: (options) => rfc(options, { hasHeadroom: false }),
  "rfc-headroom": (options) => rfc(options, { hasHeadroom: true }),
};

function rfc(options: PolicyOptions, { hasHeadroom }: { hasHeadroom: boolean }): Policy {
  return createRfcPolicy({ ...options, bindsThinking: bindsThinking(options.model), hasHeadroom });
}

function economic(options: PolicyOptions, preset: { lowWater: number; protectShare?: number }): Policy {
  return createEconomicPolicy({
    coldTrigger: options.trimWhenCold ? 0.6 : 1,
    readTurns: createTurnReader(),
    renderDigest: createDigestRenderer(options.counter),
    needsDigest: options.summarise !== undefined,
    lowWater: preset.lowWater,
    protect: { turns: options.keep, share: preset.protectShare ?? 0.3 },
    bindsThinking: bindsThinking(options.model),
    excludeTools: new Set(options.excludeTools),
    keepInputs: new Set(options.keepInputs),
    isPinned: options.isPinned,
    isTrimmable: options.isTrimmable,
    placeholders: options.placeholders,
  });
}
