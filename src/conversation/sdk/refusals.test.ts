import { describe, expect, it } from "vitest";
import { readRefusal } from "./refusals.ts";

const words: readonly (readonly [who: string, text: string, numbers: object])[] = [
  ["Anthropic", "prompt is too long: 213462 tokens > 200000 maximum", { tokens: 213_462, limit: 200_000 }],
  [
    "Anthropic with max_tokens",
    "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens`",
    { tokens: 199_759, answer: 8_192, limit: 200_000 },
  ],
  ["Vertex", "Prompt is too long", {}],
  [
    "OpenAI chat",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.",
    { tokens: 204_308, limit: 128_000 },
  ],
  [
    "DeepSeek, vLLM",
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
    { tokens: 112_946, answer: 10_000, limit: 16_384 },
  ],
  [
    "OpenAI, older",
    "This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
    { tokens: 3_975, answer: 256, limit: 4_097 },
  ],
  [
    "OpenRouter",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 37545 tokens (20921 of text input, 16624 in the output).",
    { tokens: 20_921, answer: 16_624, limit: 32_768 },
  ],
  [
    "OpenAI, GPT-5",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300145 tokens.",
    { tokens: 300_145, limit: 272_000 },
  ],
  ["OpenAI responses", "Your input exceeds the context window of this model. Please adjust your input.", {}],
  [
    "Gemini",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    { tokens: 1_196_265, limit: 1_048_575 },
  ],
  [
    "Gemini on Vertex",
    "Unable to submit request because the input token count is 32825 but model only supports up to 32768.",
    { tokens: 32_825, limit: 32_768 },
  ],
  [
    "xAI",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { tokens: 537_812, limit: 131_072 },
  ],
  ["Groq", "Please reduce the length of the messages or completion.", {}],
  [
    "Mistral",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    { tokens: 40_000, limit: 32_768 },
  ],
  [
    "Fireworks",
    "The prompt is too long: 203557, model maximum context length: 196607",
    { tokens: 203_557, limit: 196_607 },
  ],
  [
    "Together",
    "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
    { tokens: 516_368, limit: 262_144 },
  ],
  [
    "TGI",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4062 `inputs` tokens and 512 `max_new_tokens`",
    { tokens: 4_062, answer: 512, limit: 4_097 },
  ],
  [
    "vLLM, newer",
    "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens.",
    { tokens: 99_073, answer: 32_000, limit: 131_072 },
  ],
  [
    "llama.cpp",
    "request (67311 tokens) exceeds the available context size (65536 tokens), try increasing it",
    { tokens: 67_311, limit: 65_536 },
  ],
  [
    "LM Studio",
    "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    { tokens: 15_857, limit: 4_096 },
  ],
  ["Ollama", "prompt too long; exceeded max context length by 4 tokens", {}],
  ["Copilot", "prompt token count of 142000 exceeds the limit of 128000", { tokens: 142_000, limit: 128_000 }],
  [
    "Moonshot",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)",
    { tokens: 270_000, limit: 262_144 },
  ],
  ["Alibaba", "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]", { limit: 202_745 }],
  ["Bedrock", "Input is too long for requested model.", {}],
  ["Amazon Nova", "Input Tokens Exceeded: Number of input tokens exceeds maximum length.", {}],
];

describe("a refusal for length", () => {
  it.each(words)("is read as %s words it", (_who, message, numbers) => {
    const refusal = readRefusal(400, JSON.stringify({ error: { message } }));
    expect(refusal).toEqual({ kind: "length", ...numbers });
    expect(readRefusal(undefined, message)).toEqual(refusal);
  });

  it("is read from fields beside the message", () => {
    const error = {
      code: 400,
      message: "the request exceeds the available context size",
      n_prompt_tokens: 9,
      n_ctx: 8,
    };
    expect(readRefusal(400, JSON.stringify({ error }))).toEqual({ kind: "length", tokens: 9, limit: 8 });
    const coded = { message: "Too much.", code: "context_length_exceeded" };
    expect(readRefusal(400, JSON.stringify({ error: coded }))).toEqual({ kind: "length" });
  });

  it("is a status 413 in any words, but not a limit for each minute", () => {
    expect(readRefusal(413, "<h1>Request Entity Too Large</h1>")).toEqual({ kind: "length" });
    const groq = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000";
    expect(readRefusal(413, groq)).toBeUndefined();
  });

  it("is not read from other errors", () => {
    for (const message of ["messages: roles must alternate", "max_tokens is too large", "model not found", ""]) {
      expect(readRefusal(400, message)).toBeUndefined();
    }
    for (const status of [401, 403, 404, 408, 429, 500, 529]) {
      expect(readRefusal(status, "prompt is too long: 5 tokens > 4 maximum")).toBeUndefined();
    }
  });
});

describe("other refusals", () => {
  it("are read with the message that they name", () => {
    const bound =
      "messages.7.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block.";
    expect(readRefusal(400, bound)).toEqual({ kind: "thinking", message: 7 });
    expect(readRefusal(400, "Unknown parameter: 'stream_options'.")).toEqual({ kind: "stream_options" });
  });
});
