/** `plugin serve`: the process that an installed plugin starts. Only the protocol uses stdout. */
import { ContextError } from "../../errors.ts";
import { type PluginClient, type PluginSettings, servePlugin } from "../../plugins/index.ts";
import { openStore, type Store } from "../../store/index.ts";
import { messageOf } from "../../text/index.ts";
import type { Call } from "../command.ts";
import { storePath } from "../store-file.ts";
import { readVersion } from "../version.ts";

/** A store that is busy for longer counts as broken, and the result stays as it is. */
const waitMs = 40;

export async function runPluginServe(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.serverTools === undefined) throw new ContextError("usage", `${client.id} has no process of its own`);
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
  const tools = client.serverTools({ settings, env, store, log: output.note });
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", () => process.exit());
  await servePlugin({ version: readVersion(), tools, stdin, stdout: process.stdout });
  await (await opened?.catch(() => undefined))?.close();
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
    if (answer !== undefined) output.result(JSON.stringify(answer));
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
  return openStore({ place: await storePath(call), waitMs });
}
