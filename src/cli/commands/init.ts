import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Adapter, chooseAdapters } from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import { printable, toByteString } from "../../text/index.ts";
import { changeFile, homeDirectory, projectRoot, readEmbeddedContent } from "../../workspace/index.ts";
import { type Call, type Command, defineCommand } from "../command.ts";
import { sampleConfig, sampleContext, samplePackFile } from "../packs/sample-files.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";

export const initCommand: Command = defineCommand({
  options: {},
  details: `Writes .plimsoll/config.yaml with the AI tools found here, and a sample pack unless there are packs already, in the
root of the repository; outside of one, in the current directory. What exists is never changed. Editors that know
the YAML language server check the files by the schemas of the installed package, else by copies in
.plimsoll/schemas.`,
  examples: [
    { line: "plimsoll init", meaning: "start in this project" },
    { line: "plimsoll init && plimsoll inject --dry-run", meaning: "and see what would be written" },
  ],
  async run(call) {
    const { cwd, env, output } = call;
    const root = projectRoot(cwd, homeDirectory(env));
    const packs = join(root, ".plimsoll/packs");
    const hadPacks = hasPacks(packs);
    const files: InitFile[] = [];
    for (const [path, text] of await plannedFiles(root, { hadPacks, env })) {
      files.push(await createFile(join(root, path), text, { root, call }));
    }
    if (hadPacks) files.push({ path: shownPath(packs, cwd, env), state: "kept" });
    for (const { problem } of files) if (problem !== undefined) output.problem(problem);
    const failed = files.some(({ problem }) => problem !== undefined);
    const lines = files.map(
      ({ path, state }) => `${state} ${printable(path)}${state === "kept" ? " (it was there)" : ""}`,
    );
    const subject = shownPath(hadPacks ? packs : join(packs, "project/context.md"), cwd, env);
    return {
      json: { files: files.map(({ path, state }) => ({ path, state })) },
      text: [...lines, ...(failed ? [] : nextSteps(subject))].join("\n"),
      failed,
    };
  },
});

interface InitFile {
  readonly path: string;
  readonly state: "created" | "kept" | "failed";
  readonly problem?: string;
}

/** Path below the root and text, in the order of writing: a pack.yaml comes last, because only with it a folder is a pack. */
async function plannedFiles(
  root: string,
  { hadPacks, env }: { readonly hadPacks: boolean; readonly env: Call["env"] },
): Promise<[string, string][]> {
  const isInstalled = existsSync(join(root, "node_modules/plimsoll/schemas/config.schema.json"));
  const schemas = isInstalled ? "../node_modules/plimsoll/schemas" : "schemas";
  const found = await chooseAdapters(readEmbeddedContent<Adapter>().adapters, {
    ...{ tools: undefined, all: false, env },
    places: { scope: "project", root, home: homeDirectory(env) },
  });
  const options = { tools: found.map(({ id }) => id), schemas };
  const isStarted = hadPacks && existsSync(join(root, ".plimsoll/config.yaml"));
  const files: [string, string][] = [["config.yaml", sampleConfig(options)]];
  if (!hadPacks) files.push(["packs/project/context.md", sampleContext]);
  if (!hadPacks) files.push(["packs/project/pack.yaml", samplePackFile(options)]);
  if (!isInstalled && !isStarted) files.push(...["config", "pack", "profile", "adapter"].map(schemaFile));
  return files.map(([path, text]) => [join(".plimsoll", path), text]);
}

/** A team that has packs wants no sample among them. */
function hasPacks(directory: string): boolean {
  if (!existsSync(directory)) return false;
  return readdirSync(directory).some((name) => existsSync(join(directory, name, "pack.yaml")));
}

function schemaFile(name: string): [string, string] {
  const path = fileURLToPath(new URL(`../../../schemas/${name}.schema.json`, import.meta.url));
  return [`schemas/${name}.schema.json`, readFileSync(path, "utf8")];
}

/** A file that cannot be written keeps no other from being written. */
async function createFile(
  path: string,
  text: string,
  { root, call: { cwd, env } }: { readonly root: string; readonly call: Call },
): Promise<InitFile> {
  const shown = shownPath(path, cwd, env);
  try {
    const { written } = await changeFile(path, {
      root,
      env,
      change: (current) => current ?? toByteString(text),
    });
    return { path: shown, state: written ? "created" : "kept" };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { path: shown, state: "failed", problem: describeError(error, () => shown) };
  }
}

function nextSteps(subject: string): string[] {
  return [
    "",
    "Next:",
    `  1. write what your team needs to know into ${printable(subject)}`,
    "  2. plimsoll packs lint                 check it",
    "  3. plimsoll inject --dry-run --stats   see what each AI tool would get",
    "  4. plimsoll inject                     write it",
  ];
}
