/** What nebula.toml and the front matter of a phase may say. Loads zod. Keys marked as carried are checked and have no effect here. */
import { z } from "zod";
import { gates } from "./nebula.ts";

const text = z.string();
const texts = z.array(z.string());
/** Names of phases and patterns: an empty one is a slip. */
const names = z.array(z.string().min(1));
const atLeast0 = z.number().min(0);
const whole = z.int().min(0);

const routingSchema = z.strictObject({
  enabled: z.boolean().optional(),
  tiers: z
    .array(
      z.strictObject({
        name: text.optional(),
        model: text.optional(),
        max_score: z.number().optional(),
      }),
    )
    .optional(),
});

const executionSchema = z.strictObject({
  max_workers: whole.optional(),
  max_context_tokens: whole.optional(),
  gate: z.enum(gates).optional(),
  model: text.optional(),
  // Carried:
  max_review_cycles: whole.optional(),
  max_budget_usd: atLeast0.optional(),
  hail_timeout: text.optional(),
  routing: routingSchema.optional(),
  auto_decompose: z.boolean().optional(),
  healing: z.boolean().optional(),
  healing_max_attempts: whole.optional(),
  healing_budget_reserve: atLeast0.optional(),
});

export const manifestSchema: z.ZodType<ManifestFile> = z.strictObject({
  nebula: z.strictObject({
    name: z.string(),
    // Carried:
    description: text.optional(),
  }),
  defaults: z
    .strictObject({
      priority: z.int().optional(),
      // Carried:
      type: text.optional(),
      labels: texts.optional(),
      assignee: text.optional(),
    })
    .optional(),
  execution: executionSchema.optional(),
  context: z
    .strictObject({
      working_dir: text.optional(),
      goals: texts.optional(),
      constraints: texts.optional(),
      // Carried:
      repo: text.optional(),
    })
    .optional(),
  // Carried:
  dependencies: z
    .strictObject({ requires_beads: texts.optional(), requires_nebulae: texts.optional() })
    .optional(),
});

/** What of nebula.toml is read further: what has an effect, and what programs find in a nebula. */
export interface ManifestFile {
  nebula: { name: string; description?: string | undefined };
  defaults?: Partial<Pick<PhaseFile, "type" | "priority" | "labels" | "assignee">> | undefined;
  execution?:
    | {
        max_workers?: number | undefined;
        max_context_tokens?: number | undefined;
        gate?: PhaseFile["gate"];
        model?: string | undefined;
      }
    | undefined;
  context?:
    | { working_dir?: string | undefined; goals?: string[] | undefined; constraints?: string[] | undefined }
    | undefined;
  /** Without an effect, and looked at for slips. */
  dependencies?:
    | { requires_beads?: string[] | undefined; requires_nebulae?: string[] | undefined }
    | undefined;
}

export const phaseSchema: z.ZodType<PhaseFile> = z.strictObject({
  id: z.string(),
  title: z.string(),
  priority: z.int().optional(),
  depends_on: names.optional(),
  blocks: names.optional(),
  scope: names.optional(),
  allow_scope_overlap: z.boolean().optional(),
  gate: z.enum(gates).optional(),
  model: text.optional(),
  // Carried:
  type: text.optional(),
  labels: texts.optional(),
  assignee: text.optional(),
  max_review_cycles: whole.optional(),
  max_budget_usd: atLeast0.optional(),
  decomposed: z.boolean().optional(),
  auto_decompose: z.boolean().optional(),
});

/** What of a phase's front matter is read further: what has an effect, and what programs find in a phase. */
export interface PhaseFile {
  id: string;
  title: string;
  type?: string | undefined;
  priority?: number | undefined;
  depends_on?: string[] | undefined;
  blocks?: string[] | undefined;
  labels?: string[] | undefined;
  assignee?: string | undefined;
  scope?: string[] | undefined;
  allow_scope_overlap?: boolean | undefined;
  gate?: (typeof gates)[number] | undefined;
  model?: string | undefined;
}
