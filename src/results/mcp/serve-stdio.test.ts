import { isJSONRPCNotification, isJSONRPCRequest, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { parseLine } from "./rpc-message.ts";
import { type ClientMessage, readClientMessage, renderServerMessage } from "./serve-stdio.ts";

const isTaken = (message: unknown) => isJSONRPCRequest(message) || isJSONRPCNotification(message);
const read = (text: string): ClientMessage[] =>
  parseLine(Buffer.from(text))!.messages.map((value) => readClientMessage(value, isTaken));
const messageOf = (text: string): object => {
  const [found] = read(text);
  return "message" in found! ? found.message : {};
};

test("accepted messages are passed to the library unchanged", () => {
  for (const text of [
    '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"x","arguments":{"a":null}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":9007199254740991,"result":{}}',
  ])
    expect(messageOf(text)).toEqual(JSON.parse(text));
});

test("null in a message means absent", () => {
  const note = '{"jsonrpc":"2.0","id":null,"method":"notifications/initialized","params":null}';
  expect(messageOf(note)).toEqual({ jsonrpc: "2.0", method: "notifications/initialized" });
  const answer = '{"jsonrpc":"2.0","id":1,"method":null,"result":{}}';
  expect(messageOf(answer)).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
});

test.each([["1763300000000000001"], ["-9223372036854775808"], ["1.5"], ["1e400"]])(
  "the id %s is returned unchanged",
  (id) => {
    const { id: taken } = messageOf(`{"id" : ${id} ,"method":"ping","jsonrpc":"2.0"}`) as { id: string };
    const error = { code: 1, message: "no" };
    expect(renderServerMessage({ jsonrpc: "2.0", id: taken, error })).toBe(
      `{"jsonrpc":"2.0","id":${id},"error":{"code":1,"message":"no"}}\n`,
    );
    const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
    expect(messageOf(cancel)).toMatchObject({ params: { requestId: taken } });
  },
);

test("other messages of the server are written unchanged", () => {
  const messages: JSONRPCMessage[] = [
    { jsonrpc: "2.0", id: 1, result: {} },
    { jsonrpc: "2.0", id: "a", method: "ping" },
    { jsonrpc: "2.0", method: "notifications/message" },
  ];
  for (const message of messages) expect(renderServerMessage(message)).toBe(`${JSON.stringify(message)}\n`);
});

test("a request that the library would drop is refused with its id, if it has one", () => {
  const refusals = read(
    `[{"jsonrpc":"1.0","id":7,"method":"ping"},
      {"id":"a","method":"ping"},
      {"jsonrpc":"2.0","id":1763300000000000001,"method":"ping","params":[1]},
      {"jsonrpc":"2.0","id":{"a":1},"method":"ping"},
      {"jsonrpc":"2.0","id":8,"method":"ping","other":true},
      {"jsonrpc":"2.0","id":9,"method":5},
      {"method":"notifications/initialized"},
      7]`,
  );
  const ids = refusals.map((each) => ("answer" in each ? /"id":([^,]*)/.exec(each.answer ?? "")?.[1] : undefined));
  expect(ids).toEqual(["7", '"a"', "1763300000000000001", "null", "8", "9", undefined, undefined]);
  expect(refusals.every((each) => "refused" in each)).toBe(true);
  const [first] = refusals as { answer: string }[];
  expect(JSON.parse(first!.answer)).toMatchObject({ jsonrpc: "2.0", error: { code: -32_600 } });
});
