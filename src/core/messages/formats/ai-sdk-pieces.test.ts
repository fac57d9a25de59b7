import { describe, expect, it } from "vitest";
import { countMessage } from "../count-messages.ts";
import { characterCounter } from "./message-format.contract.ts";

const count = (role: string, part: object) =>
  countMessage({ role, content: [part] }, characterCounter(), { format: "ai-sdk" }) - 4;
const toolResult = { type: "tool-result", toolCallId: "1", toolName: "ls" };

describe("AI SDK parts", () => {
  it("count results of every type", () => {
    const counted = (output: object) => count("tool", { ...toolResult, output }) - 9;
    expect(counted({ type: "text", value: "abc" })).toBe(3);
    expect(counted({ type: "error-text", value: "abc" })).toBe(3);
    expect(counted({ type: "json", value: { a: [1] } })).toBe('{"a":[1]}'.length);
    expect(counted({ type: "error-json", value: "abc" })).toBe('"abc"'.length);
    expect(counted({ type: "execution-denied" })).toBe(0);
    expect(counted({ type: "execution-denied", reason: "no" })).toBe(2);
    const media = { type: "image-data", data: "AAAA", mediaType: "image/png" };
    expect(counted({ type: "content", value: [{ type: "text", text: "abc" }, media] })).toBe(3 + 2000);
    expect(counted({ type: "smoke", colour: "blue" })).toBe('{"type":"smoke","colour":"blue"}'.length);
  });

  it("count reasoning by its text, or by its encrypted content", () => {
    const reasoning = { type: "reasoning", text: "hm" };
    const hidden = 4000 * 0.75 - 174;
    const sealed = "A".repeat(4000);
    expect(count("assistant", reasoning)).toBe(2);
    expect(count("assistant", { ...reasoning, providerOptions: { anthropic: { signature: sealed } } })).toBe(hidden);
    const redacted = {
      type: "reasoning",
      text: "",
      providerOptions: { anthropic: { redactedData: sealed } },
    };
    expect(count("assistant", redacted)).toBe(hidden / 3);
    const openai = { itemId: "rs_1", reasoningEncryptedContent: sealed };
    expect(count("assistant", { ...reasoning, providerOptions: { openai } })).toBe(hidden);
  });

  it("count a file by its type, whatever form its data has", () => {
    const gif = Buffer.from("GIF89a\x1c\0\x1c\0\0\0\0", "latin1");
    const data = gif.toString("base64");
    const url = `data:image/gif;base64,${data}`;
    const forms = [
      data,
      url,
      new URL(url),
      gif,
      new Uint8Array(gif),
      new Uint8Array(gif).buffer,
      { type: "data", data },
    ];
    for (const form of [...forms, { type: "data", data: gif }, { type: "url", url: new URL(url) }]) {
      expect(count("user", { type: "file", mediaType: "image/gif", data: form })).toBe(1);
    }
    for (const form of forms) expect(count("user", { type: "image", image: form })).toBe(1);
    const linked = [new URL("https://example.org/a.gif"), "https://example.org/a.gif", { openai: "file_1" }];
    for (const form of linked) expect(count("user", { type: "image", image: form })).toBe(2000);
    const fileOf = (mediaType: string, form: unknown) => count("user", { type: "file", mediaType, data: form });
    expect(fileOf("application/pdf", Buffer.from("%PDF /Type /Page /Type /Page"))).toBe(2 * 3000);
    expect(fileOf("text/plain", { type: "text", text: "abc" })).toBe(3);
    expect(fileOf("audio/wav", "AAAA")).toBe(2000);
  });

  it("name the path of what is malformed in a result", () => {
    const broken = (output: unknown) => () => count("tool", { ...toolResult, output });
    expect(broken(undefined)).toThrow("message.content[0].output must be an object, not undefined");
    expect(broken({ type: "text" })).toThrow("message.content[0].output.value must be a string, not undefined");
    expect(broken({ type: "content", value: 7 })).toThrow(
      "message.content[0].output.value must be a string or an array",
    );
    expect(broken({ type: "content", value: [7] })).toThrow("message.content[0].output.value[0] must be an object");
  });
});
