/** What the files of a pack and a profile may say. Loads zod, so only a layer of files, or the script that writes schemas/, imports this. */
import { z } from "zod";
import type { KnownErrorEntry, LearningFile, PackFile, ProfileFile, SampleEntry } from "./pack-file.ts";

const text = z.string();
const texts = z.array(text);
const id = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]*$/, "a name of letters, digits, dots, dashes and underscores");
const entryId = z.string().min(1);

export const packFileSchema: z.ZodType<PackFile> = z
  .strictObject({
    id: id.meta({ description: "Unique name of the pack, the same as its folder's." }),
    name: key(text, "What people call it."),
    description: key(text, "What it teaches, in one line."),
    tags: key(texts, "Words to find it by."),
    profiles: key(texts, "Profiles that list this pack. For people only: a profile names its packs itself."),
    weight: key(z.int(), "Importance: heavier packs come first and are dropped last.", 0),
    base: key(z.boolean(), "Always included, before all others.", false),
    overlaps: key(z.array(id), "Ids of packs that subsume this one: it is dropped when one of them is in."),
    additive: key(z.boolean(), "Adds to the pack of the same id in a lower layer, not replacing it.", false),
    additive_position: key(z.enum(["before", "after"]), "Where the text of an additive pack goes.", "after"),
    locales: key(
      z.record(
        text,
        z.strictObject({ name: key(text, "Its name."), description: key(text, "Its description.") }),
      ),
      "Language to name and description. Texts have files of their own, such as context.de.md.",
    ),
    versions: key(z.record(text, text), "Name of a package to the newest version that the pack knows."),
    changelog: key(texts, "What changed, newest first. The first three lines are shown."),
  })
  .meta({ title: "Plimsoll pack", description: "The file pack.yaml of a pack." });

export const samplesFileSchema: z.ZodType<readonly SampleEntry[]> = z
  .array(
    z.strictObject({
      id: key(entryId, "Unique name, such as cap/service-handler; absent: the label."),
      label: entryId.meta({ description: "What the sample is called." }),
      url: key(text, "Where it is."),
      description: key(text, "What it shows."),
      tags: key(texts, "Words to find it by."),
      inject: key(z.boolean(), "Listed among the canonical patterns.", false),
    }),
  )
  .meta({ title: "Plimsoll samples", description: "The file samples.yaml of a pack." });

export const knownErrorsFileSchema: z.ZodType<readonly KnownErrorEntry[]> = z
  .array(
    z.strictObject({
      id: key(entryId, "Unique name, such as cap/no-database; absent: the pattern."),
      pattern: entryId.meta({ description: "The message that one sees." }),
      cause: key(text, "Why it comes."),
      fix: key(text, "What to do."),
      docs: key(text, "Where to read more."),
      tags: key(texts, "Words to find it by."),
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
          title: key(text, "What it is called; absent: made from the slug."),
          url: key(text, "Where it is; absent: the slug's page at learning.sap.com."),
          level: key(text, "For whom, such as beginner."),
          hours: key(z.number().min(0), "How long it takes."),
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
    name: key(text, "What people call it."),
    description: key(text, "For whom it is, in one line."),
    packs: key(
      z.array(
        z.strictObject({
          id: id.meta({ description: "A pack." }),
          weight: key(z.int(), "Its weight in this profile; absent or 0: its own."),
        }),
      ),
      "Packs and their weights. Packs that are not listed keep their own.",
    ),
    tip_tags: key(texts, "Read and not used."),
  })
  .meta({ title: "Plimsoll profile", description: "A file in profiles/." });

/** By the name of the file in schemas/. */
export const packSchemas: Readonly<Record<string, z.ZodType>> = {
  pack: packFileSchema,
  samples: samplesFileSchema,
  "known-errors": knownErrorsFileSchema,
  learning: learningFileSchema,
  profile: profileFileSchema,
};

function key<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  value?: unknown,
): z.ZodOptional<Schema> {
  return schema.meta({ description, ...(value !== undefined && { default: value }) }).optional();
}
