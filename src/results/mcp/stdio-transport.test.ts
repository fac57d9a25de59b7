import { PassThrough } from "node:stream";
import { isJSONRPCRequest, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test, vi } from "vitest";
import { createStdioTransport } from "./serve-stdio.ts";

function connect() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const transport = createStdioTransport({ stdin, stdout }, isTaken);
  const messages: JSONRPCMessage[] = [];
  const errors: string[] = [];
  const state = { ended: false };
  transport.onmessage = (message) => messages.push(message);
  transport.onerror = ({ message }) => errors.push(message);
  void transport.ended.then(() => {
    state.ended = true;
  });
  return { stdin, stdout, transport, messages, errors, state };
}

const isTaken = (message: unknown): boolean =>
  isJSONRPCRequest(message) || (message as JSONRPCMessage & { method: string }).method === cancelled;
const cancelled = "notifications/cancelled";
const request = (id: number, method = "ping") => ({ jsonrpc: "2.0" as const, id, method });
const answer = (id: number) => ({ jsonrpc: "2.0" as const, id, result: {} });
const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

test("messages arrive one by one, also from one line, and other lines are reported", async () => {
  const { stdin, transport, messages, errors } = connect();
  await transport.start();
  stdin.write(`${line(request(1))}\r\n{"half`);
  stdin.write(`"\n7\n${line([request(2), request(3)])}`);
  await pause();
  expect(messages).toEqual([request(1), request(2), request(3)]);
  expect(errors).toEqual(["a line on stdin is not JSON", "a message on stdin is not an object"]);
});

test("requests before the end of stdin are still answered", async () => {
  const { stdin, stdout, transport, state } = connect();
  await transport.start();
  stdin.end(line(request(1)) + line(request(2)));
  await pause();
  await transport.send(answer(1));
  await pause();
  expect(state.ended).toBe(false);
  await transport.send(answer(2));
  await transport.ended;
  expect(String(stdout.read())).toBe(line(answer(1)) + line(answer(2)));
});

test("nobody waits for cancelled requests or subscriptions", async () => {
  const { stdin, transport } = connect();
  await transport.start();
  const cancel = { jsonrpc: "2.0", method: cancelled, params: { requestId: 1 } };
  stdin.end(line(request(1)) + line(request(2, "subscriptions/listen")) + line(cancel));
  await transport.ended;
});

test("a message that the library would drop is answered here, and nobody waits for it", async () => {
  const { stdin, stdout, transport, messages, errors } = connect();
  await transport.start();
  stdin.end('{"jsonrpc":"1.0","id":1763300000000000001,"method":"ping"}\n');
  await transport.ended;
  expect(String(stdout.read())).toMatch(
    /^\{"jsonrpc":"2\.0","id":1763300000000000001,"error":\{"code":-32600,"message":"Invalid Request: .*"\}\}\n$/,
  );
  expect(messages).toEqual([]);
  expect(errors).toEqual(["a message on stdin is not JSON-RPC 2.0"]);
});

test("a request with an id of 64 bits is answered and cancelled with that id", async () => {
  const { stdin, stdout, transport, messages, state } = connect();
  await transport.start();
  const [one, two] = ["1763300000000000001", "1763300000000000002"];
  const ask = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`;
  stdin.write(ask(one) + ask(two));
  stdin.end(`{"jsonrpc":"2.0","method":"${cancelled}","params":{"requestId":${one}}}\n`);
  await pause();
  const [first, second, taken] = messages as unknown as { id: string; params: { requestId: string } }[];
  expect([typeof first!.id, taken!.params.requestId]).toEqual(["string", first!.id]);
  expect(second!.id).not.toBe(first!.id);
  expect(state.ended).toBe(false);
  await transport.send({ jsonrpc: "2.0", id: second!.id, result: { a: 1 } });
  await transport.ended;
  expect(String(stdout.read())).toBe(`{"jsonrpc":"2.0","id":${two},"result":{"a":1}}\n`);
});

test("the process lives as long as an answer can come, and no longer", async () => {
  const [set, clear] = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "clearTimeout")];
  const { stdin, transport } = connect();
  await transport.start();
  stdin.end(line(request(1)));
  await pause();
  const timer = set.mock.results.find((_, index) => set.mock.calls[index]![1]! >= 10_000)?.value;
  expect(timer?.hasRef()).toBe(true);
  expect(clear).not.toHaveBeenCalledWith(timer);
  await transport.close();
  expect(clear).toHaveBeenCalledWith(timer);
  vi.restoreAllMocks();
});

test("a client that no longer reads ends it, even if stdin is open", async () => {
  for (const [code, told] of [
    ["EPIPE", []],
    ["EIO", ["EIO"]],
  ] as const) {
    const { stdout, transport, errors } = connect();
    await transport.start();
    stdout.emit("error", Object.assign(new Error(code), { code }));
    await transport.ended;
    expect(errors).toEqual(told);
  }
});

test("closing ends it once, and stdin can then end silently", async () => {
  const { stdin, transport, errors } = connect();
  let closed = 0;
  transport.onclose = () => {
    closed += 1;
  };
  await transport.start();
  await transport.close();
  await transport.close();
  await transport.ended;
  stdin.destroy();
  await pause();
  expect({ closed, errors }).toEqual({ closed: 1, errors: [] });
});

test("after it is closed, the end of stdin waits for nobody", async () => {
  const set = vi.spyOn(globalThis, "setTimeout");
  const { stdin, transport } = connect();
  await transport.start();
  stdin.write(line(request(1)));
  await pause();
  await transport.close();
  stdin.end();
  await pause();
  const timers = set.mock.results.filter((_, index) => set.mock.calls[index]![1]! >= 10_000);
  expect(timers.filter(({ value }) => (value as { _destroyed?: boolean })._destroyed !== true)).toEqual([]);
  vi.restoreAllMocks();
});

test("a failing stdin ends it and reports why", async () => {
  const { stdin, transport, errors } = connect();
  await transport.start();
  await pause();
  stdin.destroy(new Error("no more"));
  await transport.ended;
  expect(errors).toEqual(["no more"]);
});
