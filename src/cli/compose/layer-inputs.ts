/** The layers of a composed context as a command line names them: files, standard input, a snapshot of the project. */
import type { ContextLayers, ProjectScan } from "../../compose/index.ts";
import { ContextError } from "../../errors.ts";
import type { Call } from "../command.ts";
import { readTextInput, refuseSharedStdin } from "../text-input.ts";
import { scanDirectory } from "./scan-directory.ts";

export interface LayerFlags {
  readonly project?: string | undefined;
  readonly snapshot?: boolean | undefined;
  readonly fabric?: string | undefined;
  readonly prior?: string | undefined;
}

/** Mistakes that show before anything is read. */
export function checkLayerFlags({ project, snapshot, fabric, prior }: LayerFlags): void {
  if (project !== undefined && snapshot) {
    throw new ContextError("usage", "--project and --snapshot are both given", { hint: "Use one of them." });
  }
  const files = [project, fabric, prior];
  if (files.every((name) => name === undefined) && !snapshot) {
    throw new ContextError("usage", "no layer is given", {
      hint: "Name at least one: --project FILE or --snapshot, --fabric FILE, --prior FILE.",
    });
  }
  refuseSharedStdin(files, "layer");
}

export interface LayerInputs extends ContextLayers {
  /** Of the project here, where its snapshot is to be the project layer. */
  readonly scan?: ProjectScan | undefined;
}

/** Files are read even where nothing is composed: a wrong name is a mistake with any budget. */
export async function readLayers(call: Call<LayerFlags>, maxTokens: number): Promise<LayerInputs> {
  const { project, snapshot, fabric, prior } = call.options;
  const read = async (name: string | undefined) =>
    name === undefined ? undefined : (await readTextInput(name, call)).text;
  return {
    scan: snapshot && maxTokens > 0 ? await scanDirectory(call.cwd, call) : undefined,
    project: await read(project),
    fabric: await read(fabric),
    priorWork: await read(prior),
  };
}
