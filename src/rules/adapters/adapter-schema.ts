/** The schema of an adapter's file. It loads zod, so only code that reads layers from files, and the script that writes
 *  schemas/, import it. */

import { z } from "zod";
import { verbosities } from "../../core/text/index.ts";
import { onOverflows } from "../../host/index.ts";
import type { AdapterFile } from "../content/load-content.ts";
import { agentTools } from "../packs/index.ts";
import { type Adapter, adapterValues, scopes } from "./adapter.ts";

const text = z.string();
const filled = z.string().min(1);

const targetSchema = z.strictObject({
  scope: z.enum(scopes).meta({ description: "global: a file of the user; project: a file in the repository." }),
  path: filled.meta({ description: "The file: below HOME if it starts with ~/, else below the repository." }),
  mode: z
    .enum(adapterValues.targetMode)
    .default("replace-section")
    .meta({ description: "replace-section writes a marked block; replace-file writes the whole file." }),
  // A marker line must hold the name, and a later run must find it again.
  section: text
    .regex(/^(?!.*(?:--|sha256=))\S(?:.{0,98}\S)?$/, "at most 100 characters without -- or sha256=")
    .default("context")
    .meta({ description: "Name of the marked block." }),
  preamble: key(text, "Text that a replace-file target starts with, such as front matter."),
});

const configPlaceSchema = z.strictObject({
  path: key(text, "The file."),
  format: key(text, "json, yaml or toml."),
  key: key(text, "The key in the file, with dots between its parts."),
  next: key(text, "What a person does before the tool uses a server that was added to the file."),
});

const limitSchema = z.strictObject({
  value: z.number().positive().meta({ description: "The limit." }),
  unit: z.enum(adapterValues.limitUnit).meta({ description: "What is counted." }),
  kind: z.enum(adapterValues.limitKind).meta({
    description: "hard: the tool cuts or refuses more; warn: the tool warns; advice: somebody recommends it.",
  }),
  scope: z.enum(adapterValues.limitScope).meta({
    description: "What is measured: one file, all files that the tool loads together, or one field of a form.",
  }),
  ...dated("Where the number comes from, the best source first."),
});

const rulesSchema = z.strictObject({
  path: filled
    .regex(/^(?!~|\/)[^{}]*\{id\}[^{}/]*$/, "a path below the repository with {id} in its last part")
    .meta({ description: "The file of a pack with globs, below the repository. {id} stands for the pack's id." }),
  preamble: text.meta({
    description:
      "Its front matter. {globs} is a text with commas, {globs_list} a list; {name} and {description} are quoted texts.",
  }),
  always: key(
    text,
    "Front matter of a rule that the tool always loads, for packs without globs that only this tool gets.",
  ),
  ...dated("Where the fact comes from, the best source first."),
});

const skillsSchema = z.strictObject({
  paths: z
    .array(filled.regex(/^(?!~|\/)/, "a folder below the repository"))
    .min(1)
    .meta({ description: "Folders below the repository that hold one folder for each skill, the tool's own first." }),
  ...dated("Where the fact comes from, the best source first."),
});

const promptsSchema = z.strictObject({
  paths: z
    .array(filled.regex(/^(?!~|\/)[^{}]*\{name\}[^{}/]*$/, "a path below the repository with {name} in its last part"))
    .min(1)
    .meta({ description: "The files that the tool reads, its own first. {name} stands for the name." }),
  preamble: text.meta({
    description:
      "Front matter. {description}, {argument_hint} and {model} are quoted texts; {tools} and {other_tools} are the tool's words. A line without its value is left out.",
  }),
  tools: key(
    z.strictObject(Object.fromEntries(agentTools.map((tool) => [tool, text.optional()]))),
    "The tool's words for what an agent may use.",
  ),
  arguments: key(text, "What the tool writes for $ARGUMENTS, if it has another form."),
  ...dated("Where the fact comes from, the best source first."),
});

const fileSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[A-Za-z0-9][\w.-]*$/, "a name of letters, digits, dots, dashes and underscores")
      .meta({ description: "Unique name of the adapter." }),
    name: key(text, "What people call the tool."),
    type: key(z.enum(adapterValues.type), "How the text reaches the tool. Required if no lower layer has the adapter."),
    targets: key(z.array(targetSchema), "The files of a file-inject adapter."),
    format: key(z.enum(adapterValues.format), "The format of the text. The default is markdown."),
    template: key(text, "Read and not used."),
    instructions: key(text, "Tells a person where to paste the text."),
    max_tokens: key(z.int(), "Most tokens of the block. Absent or 0 means no limit."),
    max_bytes: key(
      z.int(),
      "Most bytes of the block; used instead of max_tokens if both are set. Absent or 0 means no limit.",
    ),
    verbosity: key(z.enum(verbosities), "How many tiers the tool gets. The default is full."),
    on_overflow: key(
      z.enum(onOverflows),
      "What happens to packs that do not fit. The default comes from the configuration.",
    ),
    export_path: key(text, "Where a file-export adapter writes the whole text."),
    mcp_config: key(configPlaceSchema, "Where the tool keeps its MCP servers."),
    extra_mcp_configs: key(z.array(configPlaceSchema), "More places where the tool keeps its MCP servers."),
    hook_config: key(configPlaceSchema, "Read and not used."),
    skill_config: key(z.strictObject({ path: key(text, "The folder.") }), "Read and not used."),
    detect: key(
      z.array(
        z.strictObject({
          command: key(text, "A command. Its program is on PATH."),
          path: key(text, "A file or folder. It exists."),
        }),
      ),
      "Signs that the tool is installed. One of them is enough.",
    ),
    limits: key(z.array(limitSchema), "Limits of the tool itself."),
    reads: key(z.array(text), "Ids of the tools that read this file."),
    imports: key(z.boolean(), "The tool follows @file lines."),
    nested: key(z.boolean(), "The tools also read a file of this name in the folders below the root."),
    skills: key(skillsSchema, "Where a project keeps the skills that the tool finds."),
    commands: key(promptsSchema, "Where a project keeps the commands that a person starts by name."),
    agents: key(promptsSchema, "Where a project keeps the agents that the tool gives tasks to."),
    rules: key(rulesSchema, "Where a project keeps rules that the tool loads only for some files."),
  })
  .meta({
    title: "Plimsoll adapter",
    description:
      "A file in adapters/. It may hold only the id and the keys that it changes of a lower layer's adapter.",
  });

export const adapterFileSchema: z.ZodType<AdapterFile<Adapter>> = fileSchema.transform((file) => ({
  id: file.id,
  over: (lower) => mergeAdapter(file, lower),
}));

/** A key of the file replaces the lower adapter's value. `mcp_config` is merged key by key. */
function mergeAdapter(
  file: z.output<typeof fileSchema>,
  lower: Adapter | undefined,
): Adapter | { readonly missing: string } {
  const { id, type = lower?.type } = file;
  if (type === undefined) return { missing: "type" };
  const below: Omit<Adapter, "id" | "name" | "type"> = lower ?? {
    targets: [],
    format: "markdown",
    instructions: "",
    detect: [],
    limits: [],
    reads: [],
    imports: false,
    mcpConfigs: [],
  };
  const { targets = below.targets, format = below.format, instructions = below.instructions } = file;
  const { detect = below.detect, limits = below.limits, reads = below.reads, imports = below.imports } = file;
  const { verbosity = below.verbosity, on_overflow = below.onOverflow, export_path = below.exportPath } = file;
  const { nested = below.nested, rules = below.rules, skills = below.skills } = file;
  const { commands = below.commands, agents = below.agents } = file;
  // The two keys are one setting: a budget in tokens must not be ignored because of a lower one in bytes.
  const hasBudget = file.max_tokens !== undefined || file.max_bytes !== undefined;
  const [main, ...others] = below.mcpConfigs;
  const firstPlace = file.mcp_config === undefined ? main : { ...main, ...file.mcp_config };
  return {
    id,
    type,
    name: file.name || (lower?.name ?? id),
    targets,
    format,
    instructions,
    detect,
    limits,
    reads,
    imports,
    nested,
    rules,
    skills,
    commands,
    agents,
    verbosity,
    onOverflow: on_overflow,
    exportPath: export_path,
    maxTokens: hasBudget ? file.max_tokens : below.maxTokens,
    maxBytes: hasBudget ? file.max_bytes : below.maxBytes,
    mcpConfigs: [...(firstPlace === undefined ? [] : [firstPlace]), ...(file.extra_mcp_configs ?? others)],
  };
}

/** The keys of a fact about a tool that may change. */
function dated(source: string) {
  return {
    evidence: z.enum(adapterValues.limitEvidence).meta({ description: source }),
    note: key(text, "The source, and what it means."),
    checked: filled.meta({ description: "The date of the last check." }),
  };
}

function key<Schema extends z.ZodType>(schema: Schema, description: string): z.ZodOptional<Schema> {
  return schema.meta({ description }).optional();
}
