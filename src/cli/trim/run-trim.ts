import { relative, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import {
  createTrimmer,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimRequest,
} from "../../history/index.ts";
import { loadConfig } from "../../workspace/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { type MessagesInput, readMessagesInput } from "../messages-input.ts";
import type { Output } from "../output.ts";
import { type CheckpointFile, openCheckpoint, withFile } from "./checkpoint-file.ts";
import {
  inRequest,
  overflowError,
  overflowWarning,
  renderStats,
  reportJson,
  type TrimReport,
} from "./report.ts";
import { readRequestParts } from "./request-parts.ts";
import { rewriteMessages } from "./rewrite-messages.ts";
import { chooseFormat, chooseModel, counterFor, isRfc, readSettings, type TrimFlags } from "./settings.ts";

/** The checkpoint is written before anything is printed: a failure leaves stdout empty. */
export async function runTrim(call: Call<TrimFlags>): Promise<CommandResult> {
  const { options, output } = call;
  const { values: config } = await loadConfig(call);
  const settings = readSettings(call, config);
  const saved = options.checkpoint === undefined ? undefined : await openCheckpoint(options.checkpoint, call);
  const input = await readMessagesInput(call.arguments[0], call);
  const request = await readRequestParts(input, call);
  const format = chooseFormat(call, input);
  const model = chooseModel(call, input);
  const counter = await counterFor(call, { config, model });
  const trimmer = await openTrimmer({ ...settings, format, model, counter }, saved);
  const reduction = reduce(trimmer, { request, input, call });
  const { key = "messages", source } = input;
  const report: TrimReport = {
    ...{ reduction, settings, counter: counter.name, format, key },
    ...{ messages: request.messages.length, file: source.file },
  };
  tellOverflow(report, output);
  await saved?.write(await trimmer.checkpoint());
  // Asked for, so that --quiet does not hide them.
  if (options.stats) output.problem(renderStats(report));
  return {
    json: reportJson(report),
    get text() {
      return rewriteMessages({ ...input, messages: request.messages }, reduction.messages);
    },
  };
}

/** The options were checked before: what is refused here is the checkpoint. */
async function openTrimmer(options: TrimmerOptions, saved: CheckpointFile | undefined): Promise<Trimmer> {
  try {
    return await createTrimmer({ ...options, checkpoint: saved?.checkpoint });
  } catch (error) {
    throw saved === undefined ? error : withFile(error, saved.file);
  }
}

interface ReduceContext {
  readonly request: TrimRequest;
  readonly input: MessagesInput;
  readonly call: Pick<Call<TrimFlags>, "options" | "cwd">;
}

/** A message that cannot be read is told with its file and its path there. */
function reduce(trimmer: Trimmer, { request, input, call: { options, cwd } }: ReduceContext): Reduction {
  try {
    return trimmer.reduce(request);
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const isOfTools = options.tools !== undefined && error.message.startsWith("tools");
    const file = isOfTools ? relative(cwd, resolve(cwd, options.tools)) : input.source.file;
    const message = inRequest(error.message, input.key ?? "messages");
    throw new ContextError(error.code, message, { hint: error.hint, file, cause: error });
  }
}

function tellOverflow(report: TrimReport, output: Output): void {
  const { reduction, settings } = report;
  if (reduction.overflow === undefined) return;
  if (!isRfc(settings.policy)) throw overflowError(reduction.overflow, report);
  output.problem(overflowWarning(reduction.overflow, report));
}
