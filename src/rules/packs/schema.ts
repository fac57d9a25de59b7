/** The schemas of the files of a pack and a profile. They load zod, so only code that reads layers from files, and the
 *  script that writes schemas/, import them. */
import { z } from "zod";
import {
  type KnownErrorEntry,
  type LearningFile,
  type PackFile,
  type ProfileFile,
  packGlob,
  type SampleEntry,
} from "./read-pack.ts";

const text = z.string();
const texts = z.array(text);
const id = z.string().regex(/^[A-Za-z0-9][\w.-]*$/, "a name of letters, digits, dots, dashes and underscores");
const entryId = z.string().min(1);
const glob = z
  .string()
  .regex(packGlob, "a pattern such as src/**/*.ts, below the project, without spaces, quotes, backslashes, # and :");

export const packFileSchema: z.ZodType<PackFile> = z
  .strictObject({
    id: id.meta({ description: "Unique name of the pack, the same as its folder's." }),
    name: key(text, "The display name."),
    description: key(text, "What it teaches, in one line."),
    tags: key(texts, "Search words."),
    profiles: key(texts, "Profiles that list this pack. For people only: a profile names its packs itself."),
    weight: key(z.int(), "Importance: heavier packs come first and are dropped last.", 0),
    base: key(z.boolean(), "Always included, before all other packs.", false),
    overlaps: key(z.array(id), "Ids of packs that include this one. It is dropped if one of them is used."),
    detect: key(
      z.array(entryId),
      "Names of files, such as package.json or *.py. The pack is used in projects that hold one. The default is every project.",
    ),
    globs: key(
      z.array(glob),
      "Patterns of the files that the pack is about. Tools with scoped rules load it only for these files.",
    ),
    optional: key(z.boolean(), "Used only where a person or a profile names the pack.", false),
    nested: key(z.boolean(), "Goes into the AGENTS.md of the folders that globs names, not of the root.", false),
    tools: key(z.array(id), "Ids of the AI tools that get the pack, such as claude-code. The default is all."),
    not_tools: key(z.array(id), "Ids of the AI tools that do not get the pack."),
    additive: key(z.boolean(), "Adds to the pack of the same id in a lower layer instead of replacing it.", false),
    additive_position: key(z.enum(["before", "after"]), "Where the text of an additive pack goes.", "after"),
    locales: key(
      z.record(text, z.strictObject({ name: key(text, "Its name."), description: key(text, "Its description.") })),
      "Maps a language to a name and a description. Translated texts are in files such as context.de.md.",
    ),
    versions: key(z.record(text, text), "Maps a package to the newest version that the pack covers."),
    changelog: key(texts, "What changed, newest first. The first three lines are shown."),
  })
  .meta({ title: "Plimsoll pack", description: "The file pack.yaml of a pack." });

export const samplesFileSchema: z.ZodType<readonly SampleEntry[]> = z
  .array(
    z.strictObject({
      id: key(entryId, "Unique name, such as cap/service-handler. The default is the label."),
      label: entryId.meta({ description: "The name of the sample." }),
      url: key(text, "The address of the sample."),
      description: key(text, "What it shows."),
      tags: key(texts, "Search words."),
      inject: key(z.boolean(), "Listed among the canonical patterns.", false),
    }),
  )
  .meta({ title: "Plimsoll samples", description: "The file samples.yaml of a pack." });

export const knownErrorsFileSchema: z.ZodType<readonly KnownErrorEntry[]> = z
  .array(
    z.strictObject({
      id: key(entryId, "Unique name, such as cap/no-database. The default is the pattern."),
      pattern: entryId.meta({ description: "The error message." }),
      cause: key(text, "The cause of the error."),
      fix: key(text, "What to do."),
      docs: key(text, "Where to read more."),
      tags: key(texts, "Search words."),
    }),
  )
  .meta({ title: "Plimsoll known errors", description: "The file known_errors.yaml of a pack." });

export const learningFileSchema: z.ZodType<LearningFile> = z
  .strictObject({
    profile_filters: key(
      z.strictObject({
        products: key(texts, "Products."),
        product_categories: key(texts, "Categories of products."),
        roles: key(texts, "Roles."),
      }),
      "Read and not used.",
    ),
    journeys: key(
      z.array(
        z.strictObject({
          slug: entryId.meta({ description: "Unique name of the course." }),
          title: key(text, "The title. A course without one is not shown."),
          url: key(text, "The address."),
          level: key(text, "The level, such as beginner."),
          hours: key(z.number().min(0), "The duration in hours."),
          featured: key(z.boolean(), "Listed under recommended learning.", false),
        }),
      ),
      "The courses.",
    ),
  })
  .meta({ title: "Plimsoll learning", description: "The file learning.yaml of a pack." });

export const profileFileSchema: z.ZodType<ProfileFile> = z
  .strictObject({
    id: id.meta({ description: "Unique name of the profile; all and minimal are built in." }),
    name: key(text, "The display name."),
    description: key(text, "The audience, in one line."),
    packs: key(
      z.array(
        z.strictObject({
          id: id.meta({ description: "A pack." }),
          weight: key(z.int(), "The weight in this profile. Absent or 0 means the pack's own weight."),
        }),
      ),
      "Packs and their weights. Other packs keep their own weight.",
    ),
    only: key(
      z.array(id),
      "Ids of the packs to use. A base pack is used only if it is listed. The default is all packs.",
    ),
    tip_tags: key(texts, "Read and not used."),
  })
  .meta({ title: "Plimsoll profile", description: "A file in profiles/." });

/** Keys are the names of the files in schemas/. */
export const packSchemas: Readonly<Record<string, z.ZodType>> = {
  pack: packFileSchema,
  samples: samplesFileSchema,
  "known-errors": knownErrorsFileSchema,
  learning: learningFileSchema,
  profile: profileFileSchema,
};

function key<Schema extends z.ZodType>(schema: Schema, description: string, value?: unknown): z.ZodOptional<Schema> {
  return schema.meta({ description, ...(value !== undefined && { default: value }) }).optional();
}
