/** `plugin serve`: the process that an installed plugin starts. Only the protocol uses stdout. */
import type { PluginClient, PluginSettings } from "../../clients/index.ts";
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { messageOf } from "../../core/text/index.ts";
import { openStore, storePath, takeEndSignals } from "../../host/index.ts";
import type { Call } from "../command.ts";
import { readVersion } from "../version.ts";

/** A store that is busy for longer counts as broken, and the result stays as it is. */
const waitMs = 40;

export async function runPluginServe(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.serverTools === undefined) throw new ContextError("usage", `${client.id} has no process of its own`);
  const { servePlugin } = await import("../../clients/plugins/serve-plugin.ts");
  const { env, output, stdin } = call;
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= open(call);
    // A person may repair it during the session.
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  // The first result should not wait for the database.
  store().catch(() => {});
  const endings: (() => Promise<void>)[] = [];
  const beforeEnd = (work: () => Promise<void>): void => void endings.push(work);
  const tools = client.serverTools({ settings, env, store, beforeEnd, log: output.note });
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", () => process.exit());
  const finish = async (): Promise<void> => {
    // Without a store there is nothing to finish.
    for (const work of endings) await work().catch(() => {});
    await (await opened?.catch(() => undefined))?.close();
  };
  takeEndSignals(() => finish().finally(() => process.exit()));
  await servePlugin({ version: readVersion(), tools, stdin, stdout: process.stdout });
  await finish();
  return undefined;
}

/** Answers one event. A failure is a note on stderr and no answer, so that the client goes on with the original. */
export async function runPluginHook(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.hook === undefined) throw new ContextError("usage", `${client.id} has no hooks that run a command`);
  const { env, output, stdin } = call;
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= open(call);
    return opened;
  };
  try {
    const event = Object(JSON.parse(await readAll(stdin)));
    const answer = await client.hook(event, { settings, env, store, log: output.note });
    if (answer !== undefined) output.exactResult(`${JSON.stringify(answer)}\n`);
  } catch (error) {
    output.note(messageOf(error));
  }
  await (await opened?.catch(() => undefined))?.close();
  return undefined;
}

async function readAll(stdin: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function open(call: Call<{ readonly store?: string | undefined }>): Promise<Store> {
  return openStore({ place: await storePath(call.options.store, call), waitMs });
}
