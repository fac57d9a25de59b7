import { createHost, type HostOptions } from "./create-host.ts";
import { createStdioTransport, type StdioStreams } from "./stdio-transport.ts";

/** Serves one client, from revision 2024-10-07 of the protocol on, until it closes its end or the signal comes. */
export async function serveStdio(options: HostOptions, streams: StdioStreams): Promise<void> {
  const { signal, log } = options;
  const host = await createHost(options);
  const { isJSONRPCNotification, isJSONRPCRequest } = await import("@modelcontextprotocol/server");
  const { serveStdio: serve } = await import("@modelcontextprotocol/server/stdio");
  const transport = createStdioTransport(
    streams,
    (message) => isJSONRPCRequest(message) || isJSONRPCNotification(message),
  );
  const connection = serve(host.factory, { transport, onerror: ({ message }) => log(message) });
  const close = (): void => void connection.close();
  if (signal.aborted) close();
  signal.addEventListener("abort", close, { once: true });
  await transport.ended;
  await connection.close();
  await host.close();
}
