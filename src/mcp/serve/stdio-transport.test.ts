import { PassThrough } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { createStdioTransport } from "./stdio-transport.ts";

function connect() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const transport = createStdioTransport({ stdin, stdout });
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

const request = (id: number, method = "ping") => ({ jsonrpc: "2.0" as const, id, method });
const answer = (id: number) => ({ jsonrpc: "2.0" as const, id, result: {} });
const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

test("messages come one by one, also out of one line, and what is none is told", async () => {
  const { stdin, transport, messages, errors } = connect();
  await transport.start();
  stdin.write(`${line(request(1))}\r\n{"half`);
  stdin.write(`"\n7\n${line([request(2), request(3)])}`);
  await pause();
  expect(messages).toEqual([request(1), request(2), request(3)]);
  expect(errors).toEqual(["a line on stdin is no JSON"]);
});

test("what was asked before the end of stdin is still answered", async () => {
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

test("nobody waits for what has been taken back, or for a subscription", async () => {
  const { stdin, transport } = connect();
  await transport.start();
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  stdin.end(line(request(1)) + line(request(2, "subscriptions/listen")) + line(cancel));
  await transport.ended;
});

test("closing ends it, once, and stdin may then go without a word", async () => {
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

test("stdin that fails ends it, and says why", async () => {
  const { stdin, transport, errors } = connect();
  await transport.start();
  await pause();
  stdin.destroy(new Error("no more"));
  await transport.ended;
  expect(errors).toEqual(["no more"]);
});
