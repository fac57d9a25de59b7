/** What a configuration file may say. Loads zod, so only a file that exists, or the schema's own script, imports this. */
import { z } from "zod";
import { leastAllocation } from "../../budget/index.ts";
import { policyNames } from "../../history/index.ts";
import { verbosities } from "../../text/index.ts";
import { counterNames } from "../../tokens/index.ts";
import { type ConfigPart, defaultConfig, onOverflows } from "./config.ts";

const { context, session, history } = defaultConfig;
const text = z.string().min(1);
/** What a page cannot be smaller than. */
const pageTokens = z.int().min(leastAllocation);
const share = z.number().min(0).max(1);

const contextSchema = z.strictObject({
  max_tokens: key(
    z.int().min(0),
    "Most tokens of composed context in a prompt; 0 composes nothing.",
    context.max_tokens,
  ),
  shares: key(
    z.strictObject({
      project: key(share, "Share of the project layer.", context.shares.project),
      fabric: key(share, "Share of the fabric layer.", context.shares.fabric),
      prior_work: key(share, "Share of the prior work layer.", context.shares.prior_work),
    }),
    "How the layers divide the context; what one does not need flows on to the next.",
  ),
});

const sessionSchema = z.strictObject({
  total: key(z.int().min(1), "Tokens of one session.", session.total),
  per_tool_call: key(pageTokens, "Most tokens of one tool result.", session.per_tool_call),
  history_max: key(z.int().min(0), "Most tokens of the work log.", session.history_max),
  warning_threshold: key(
    z.int().min(0),
    "Warn when fewer tokens than this remain.",
    session.warning_threshold,
  ),
  tools: key(z.record(text, pageTokens), "Tool name to most tokens of its result.", session.tools),
});

const historySchema = z.strictObject({
  policy: key(z.enum([...policyNames, "none"]), "How a history is trimmed.", history.policy),
  threshold: key(
    z.number().gt(0).max(1),
    "Share of the window at which the rfc policies trim.",
    history.threshold,
  ),
  keep: key(z.int().min(0), "Newest assistant turns that stay as they are.", history.keep),
  reserve: key(z.int().min(0), "Tokens of the window kept free for the answer.", history.reserve),
});

const companySchema = z.strictObject({
  source: text.meta({ description: "Directory or git URL of the company's packs." }),
  revision: key(text, "Branch, tag or commit of a git URL."),
});

export const configSchema: z.ZodType<ConfigPart> = z
  .strictObject({
    counter: key(z.enum(counterNames), "How tokens are counted; absent: each command's own default."),
    title: key(text, "Heading of what inject writes.", defaultConfig.title),
    profile: key(text, "The profile whose packs are used.", defaultConfig.profile),
    language: key(text, "Language of the packs.", defaultConfig.language),
    tools: key(z.array(text), "Ids of the AI tools to write for; absent: those found."),
    own_files: key(
      z.array(text),
      "Ids of AI tools that get a file of their own though they read AGENTS.md.",
      defaultConfig.own_files,
    ),
    verbosity: key(z.record(text, z.enum(verbosities)), "Adapter id to level.", defaultConfig.verbosity),
    on_overflow: key(
      z.enum(onOverflows),
      "What happens to packs that do not fit.",
      defaultConfig.on_overflow,
    ),
    company: key(
      companySchema,
      "The company's layer of packs; replaced as a whole, never mixed from two files. A project's needs trust.",
    ),
    context: key(contextSchema, "Composed prompt context."),
    session: key(sessionSchema, "Budget of one agent run."),
    history: key(historySchema, "Trimming of conversation histories."),
    deny: key(
      z.array(text),
      "Globs of files whose contents no tool, snapshot or prompt shows, beside those that usually hold secrets.",
      defaultConfig.deny,
    ),
    allow: key(
      z.array(text),
      "Globs of files whose contents are shown although they usually hold secrets.",
      defaultConfig.allow,
    ),
    store: key(
      text,
      "File of the store, or default for the one in the user's state directory. In the user's configuration only.",
      defaultConfig.store,
    ),
    prices: key(
      z.record(text, z.record(text, z.number().min(0))),
      "Model to its prices, over the built-in table.",
      defaultConfig.prices,
    ),
  })
  .meta({ title: "Plimsoll configuration", description: "The file .plimsoll/config.yaml." });

/** The same as JSON Schema: for editors, and for naming what is allowed at a place. */
export function configJsonSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: "input" }) as JsonSchema;
}

export interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly enum?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** Every key may be absent: its default comes from the layer below, and stands here only to be shown in an editor. */
function key<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  value?: unknown,
): z.ZodOptional<Schema> {
  return schema.meta({ description, ...(value !== undefined && { default: value }) }).optional();
}
