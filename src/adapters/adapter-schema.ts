/** What an adapter's file may say. Loads zod, so only a layer of files, or the script that writes schemas/, imports this. */
import { z } from "zod";
import { verbosities } from "../text/index.ts";
import {
  type Adapter,
  adapterFormats,
  adapterTypes,
  limitEvidences,
  limitKinds,
  limitScopes,
  limitUnits,
  onOverflows,
  scopes,
  targetModes,
} from "./adapter.ts";

const text = z.string();
const filled = z.string().min(1);

const targetSchema = z.strictObject({
  scope: z
    .enum(scopes)
    .meta({ description: "global: a file of the person; project: one in the repository." }),
  path: filled.meta({ description: "Below HOME with ~/, else below the repository." }),
  mode: z
    .enum(targetModes)
    .default("replace-section")
    .meta({ description: "A marked block in a file, or a file of its own." }),
  // What a marker line can hold and be found again by.
  section: text
    .regex(/^(?!.*(?:--|sha256=))\S(?:.{0,98}\S)?$/, "at most 100 characters without -- or sha256=")
    .default("context")
    .meta({ description: "Name of the marked block." }),
  preamble: key(text, "Goes before the text of a file of its own: front matter."),
});

const configPlaceSchema = z.strictObject({
  path: key(text, "The file."),
  format: key(text, "json, yaml or toml."),
  key: key(text, "Where in the file, with dots."),
});

const limitSchema = z.strictObject({
  value: z.number().positive().meta({ description: "The limit." }),
  unit: z.enum(limitUnits).meta({ description: "What is counted." }),
  kind: z
    .enum(limitKinds)
    .meta({ description: "hard: more is lost or refused; warn: the tool warns; advice: someone advises." }),
  scope: z
    .enum(limitScopes)
    .meta({ description: "One file, all files that the tool loads together, or one field of a form." }),
  evidence: z.enum(limitEvidences).meta({ description: "How it is known, best first." }),
  note: key(text, "Where it stands, and what it means."),
  checked: filled.meta({ description: "The day it was last looked up." }),
});

const fileSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[A-Za-z0-9][\w.-]*$/, "a name of letters, digits, dots, dashes and underscores")
      .meta({ description: "Unique name of the adapter." }),
    name: text.default("").meta({ description: "What people call the tool." }),
    type: z.enum(adapterTypes).meta({ description: "How the text reaches the tool." }),
    targets: z.array(targetSchema).default([]).meta({ description: "The files of a file-inject adapter." }),
    format: z.enum(adapterFormats).default("markdown").meta({ description: "How the text is written." }),
    template: key(text, "Read and not used."),
    instructions: text.default("").meta({ description: "Tells a person where to paste the text." }),
    max_tokens: key(z.int(), "Most tokens of the block; absent or 0: no limit."),
    max_bytes: key(z.int(), "Most bytes of the block; wins over max_tokens. Absent or 0: no limit."),
    verbosity: key(z.enum(verbosities), "How many tiers the tool gets; absent: full."),
    on_overflow: key(z.enum(onOverflows), "What happens to packs that do not fit; absent: as configured."),
    export_path: key(text, "Where a file-export adapter writes the whole text."),
    mcp_config: key(configPlaceSchema, "Where the tool keeps its MCP servers."),
    extra_mcp_configs: z
      .array(configPlaceSchema)
      .default([])
      .meta({ description: "Further places of its MCP servers." }),
    hook_config: key(configPlaceSchema, "Read and not used."),
    skill_config: key(z.strictObject({ path: key(text, "The folder.") }), "Read and not used."),
    detect: z
      .array(
        z.strictObject({
          command: key(text, "A command whose program is on PATH."),
          path: key(text, "A file or folder that exists."),
        }),
      )
      .default([])
      .meta({ description: "The tool is there when one of these holds." }),
    limits: z.array(limitSchema).default([]).meta({ description: "Limits of the tool itself." }),
    reads: z.array(text).default([]).meta({ description: "Ids of the tools that read this file." }),
    imports: z.boolean().default(false).meta({ description: "The tool follows @file lines." }),
  })
  .meta({ title: "Plimsoll adapter", description: "A file in adapters/." });

export const adapterFileSchema: z.ZodType<Adapter> = fileSchema.transform(createAdapter);

function createAdapter(file: z.output<typeof fileSchema>): Adapter {
  const { id, type, targets, format, instructions, verbosity, detect, limits, reads, imports } = file;
  return {
    ...{ id, type, targets, format, instructions, verbosity, detect, limits, reads, imports },
    name: file.name || id,
    maxTokens: file.max_tokens,
    maxBytes: file.max_bytes,
    onOverflow: file.on_overflow,
    exportPath: file.export_path,
    mcpConfigs: [...(file.mcp_config === undefined ? [] : [file.mcp_config]), ...file.extra_mcp_configs],
  };
}

function key<Schema extends z.ZodType>(schema: Schema, description: string): z.ZodOptional<Schema> {
  return schema.meta({ description }).optional();
}
