/** From the command line to the prompt: the task behind the context that it needs, within the budget. */
import { withTask } from "../../compose/index.ts";
import { ContextError } from "../../errors.ts";
import { modelForCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import { type AccountedContext, composeContext } from "../compose/compose-context.ts";
import { type ContextFlags, readContextSettings } from "../compose/context-settings.ts";
import { readTextInput, refuseSharedStdin } from "../text-input.ts";

export interface RunFlags extends ContextFlags {
  readonly agent?: string | undefined;
  readonly "agent-command"?: string | undefined;
  readonly "no-project-context"?: boolean | undefined;
  readonly fabric?: string | undefined;
  readonly prior?: string | undefined;
  readonly timeout?: string | undefined;
  readonly "dry-run"?: boolean | undefined;
}

export type RunCall = Call<RunFlags>;

export interface Prompt {
  /** What the agent gets: the composed context, a separator and the task. */
  readonly text: string;
  /** Of all of it. */
  readonly tokens: number;
  /** What of it is within the budget: the task is as long as it is. */
  readonly context: AccountedContext;
}

export async function buildPrompt(call: RunCall): Promise<Prompt> {
  const { fabric, prior } = call.options;
  refuseSharedStdin([call.arguments[0], fabric, prior], "of TASK, --fabric and --prior");
  // The model is the agent's too.
  const counting = { ...call.options, model: modelForCounter(call.options) };
  const settings = await readContextSettings({ ...call, options: counting });
  const task = await readTask(call);
  const layers = { snapshot: call.options["no-project-context"] !== true, fabric, prior };
  const context = await composeContext({ ...call, options: layers }, settings);
  const text = withTask(context.text, task);
  return { text, tokens: settings.counter.count(text), context };
}

async function readTask(call: RunCall): Promise<string> {
  const [given = ""] = call.arguments;
  const task = given === "-" ? (await readTextInput("-", call)).text : given;
  if (task.trim() !== "") return task;
  throw new ContextError("usage", "TASK is empty", { hint: "Say what the agent should do." });
}
