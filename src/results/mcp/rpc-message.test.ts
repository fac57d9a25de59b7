import { expect, test } from "vitest";
import { readEnds } from "./rpc-message.ts";

const ends = (line: string) => readEnds({ head: line.slice(0, 60), tail: line.slice(-60) });
const middle = "x".repeat(500);

test.each([
  [`{"jsonrpc":"2.0","id":7,"result":{"text":"${middle}"}}\n`, { isRequest: false, id: "7" }],
  [`{ "id" : "a\\"b" , "result":{"text":"${middle}"}}\r\n`, { isRequest: false, id: '"a\\"b"' }],
  [`{"result":{"text":"${middle}"},"jsonrpc":"2.0","id":-7}\n`, { isRequest: false, id: "-7" }],
  [`{"result":{"text":"${middle}"},"id":"x","jsonrpc":"2.0"}`, { isRequest: false, id: '"x"' }],
  [`{"method":"tools/call","params":{"text":"${middle}"},"jsonrpc":"2.0","id":8}`, { isRequest: true, id: "8" }],
  [`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"text":"${middle}"}}`, { isRequest: true, id: "8" }],
  [`{"jsonrpc":"2.0","method":"notifications/message","params":{"text":"${middle}"}}`, { isRequest: true }],
  [`{"result":{"text":"${middle}\\"id\\":5}"}}`, { isRequest: false }],
  [`{"result":{"text":"${middle}"},"id":"\\x"}`, { isRequest: false }],
  [middle, { isRequest: false }],
])("the ends of a line show what it is (%#)", (line, expected) => {
  expect(ends(line)).toEqual({ id: undefined, ...expected });
});
