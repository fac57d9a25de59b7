import { expect, it } from "vitest";
import { createFarNamesMeter } from "../bench/defaults/far-names.ts";

/** A turn that reads a file and finds a name in it. */
function turn(index: number, found: string): object[] {
  const id = `t${index}`;
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `${index}.ts` } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: found }] },
  ];
}

it("a name counts as far if the model uses it ten turns after it saw it, and as held if the request has it", () => {
  const question = { role: "user", content: "Find the bug in parseOrder()." };
  const history = [question, ...turn(0, "export function chargeCustomer() {}\nparseOrder()")];
  for (let index = 1; index <= 10; index++) history.push(...turn(index, `line ${index}`));
  const use = (name: string) => ({ role: "assistant", content: [{ type: "text", text: `It is in ${name}.` }] });
  const measure = (sent: readonly object[], name: string) => {
    const meter = createFarNamesMeter();
    meter.add(history, sent, use(name));
    return meter.totals();
  };
  expect(measure(history, "chargeCustomer")).toEqual({ used: 1, held: 1 });
  expect(measure(history.slice(3), "chargeCustomer")).toEqual({ used: 1, held: 0 });
  expect(measure(history, "parseOrder")).toEqual({ used: 0, held: 0 });
  expect(measure(history, "neverSeenName")).toEqual({ used: 0, held: 0 });
});
