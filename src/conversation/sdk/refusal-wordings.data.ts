/** How providers say that a request is too long. The first match wins, so wordings with numbers come first. `total`
 *  includes the answer. Sources: "pi" is overflow.ts of pi-ai 1.5; "code" is public code that quotes the provider, read
 *  2026-11. */
export const refusalWordings: readonly RegExp[] = [
  // Anthropic, also on Vertex and Bedrock: Devon#88, 2024-07; continue#6080, 2025-06
  /prompt is too long: (?<tokens>[\d,]+) tokens > (?<limit>[\d,]+) maximum/i,
  /input length and .max_tokens. exceed context limit: (?<tokens>\d+) \+ (?<answer>\d+) > (?<limit>\d+)/i,
  // OpenAI and Azure chat, DeepSeek: smol-ai/developer#7, 2023-05; vLLM#20409, 2025-07; OpenRouter: pi, 2026-11
  /maximum context length is (?<limit>[\d,]+) tokens[.,] however,? (?:you requested|your messages resulted in|your request has) (?:about )?(?<total>[\d,]+) (?:input )?tokens(?:[^"]*?\b(?<answer>\d+) (?:in|for|of) the (?:completion|output))?/i,
  // OpenAI, GPT-5 chat: letta 0.16, 2026-02
  /input tokens exceed the configured limit of (?<limit>\d+) tokens\. Your messages resulted in (?<tokens>\d+) tokens/i,
  // vLLM: code, 2026-11; vLLM#12165, 2025-01
  /is too large: (?<answer>\d+)\. This model's maximum context length is (?<limit>\d+) tokens and your request has (?<tokens>\d+) input/i,
  /passed (?<tokens>\d+) input tokens and requested (?<answer>\d+) output tokens\. However, the model's context length is only (?<limit>\d+)/i,
  /prompt \((?:total )?length (?<tokens>\d+)\) is (?:longer than the maximum model length of|too long to fit into the model \(context length) (?<limit>\d+)/i,
  // Gemini: pi, 2026-11; on Vertex: code, 2026-11
  /input token count \((?<tokens>\d+)\) exceeds the maximum number of tokens allowed \((?<limit>\d+)\)/i,
  /input token count is (?<tokens>\d+) but model only supports up to (?<limit>\d+)/i,
  // xAI: pi, 2026-11
  /maximum prompt length is (?<limit>\d+) but the request contains (?<tokens>\d+) tokens/i,
  // Cerebras: from memory, 2026-11
  /current length is (?<tokens>\d+) while limit is (?<limit>\d+)/i,
  // Mistral: pi, 2026-11
  /prompt contains (?<tokens>\d+) tokens[^"]{0,60}too large for model with (?<limit>\d+) maximum context length/i,
  // Fireworks, Ollama's cloud: code, 2026-11
  /prompt is too long: (?<tokens>\d+), model maximum context length: (?<limit>\d+)/i,
  // Together, SGLang: code, 2026-11. TGI and Together before 2025: text-generation-inference, router, 2024
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<limit>\d+)/i,
  /must be (?:<=|\\u003c=) (?<limit>\d+)\. Given: (?<tokens>\d+) .inputs. tokens and (?<answer>\d+) .max_new_tokens/i,
  // llama.cpp: code, 2026-11
  /"n_prompt_tokens":\s*(?<tokens>\d+),\s*"n_ctx":\s*(?<limit>\d+)/,
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<limit>\d+) tokens/i,
  // LM Studio: lmstudio-bug-tracker#237, 2024-12
  /keep the first (?<tokens>\d+) tokens when context the overflows[^"]*context length of only (?<limit>\d+)/i,
  // GitHub Copilot, Moonshot: pi, 2026-11
  /prompt token count of (?<tokens>\d+) exceeds the limit of (?<limit>\d+)/i,
  /exceeded model token limit: (?<limit>\d+)(?: \(requested: (?<total>\d+)\))?/i,
  // Cohere: from memory, 2026-11
  /tokens in the prompt cannot exceed (?<limit>\d+) - received (?<tokens>\d+)/i,
  // Alibaba: qwen-code#3652, 2026-04
  /range of input length should be \[1, (?<limit>\d+)\]/i,
  // vLLM, for a prompt that it measures in characters: code, 2026-11
  /model's context length is only (?<limit>\d+)/i,

  // Anthropic without numbers; Ollama, "prompt too long; exceeded max context length by 4 tokens": code, 2026-11
  /prompt (?:is )?too long/i,
  // OpenAI and Azure responses: codex#4675, 2025-10
  /exceeds the context window/i,
  // Bedrock: bedrock-chat#95, 2023-12; Amazon Nova: code, 2026-11
  /input is too long for requested model|number of input tokens exceeds maximum length/i,
  // Bedrock, Llama: code, 2026-11
  /maximum context length is (?<limit>\d+) tokens\. Please reduce the length/i,
  // Groq: pi, 2026-11
  /reduce the length of the messages or completion/i,
  // llama.cpp and LM Studio, older: pi, 2026-11
  /exceeds the available context size|context size has been exceeded|greater than the context length/i,
  // Ollama, MiniMax, z.ai (1261), kronk#862: code, 2026-11
  /input length exceeds the (?:maximum )?context length|context window exceeds limit/i,
  /prompt exceeds max length|the context window is full/i,
  // The code of OpenAI's error, and LiteLLM's class: code, 2026-11
  /context_length_exceeded|ContextWindowExceeded/,
  // The bytes of a request. Anthropic, 32 MB: platform.claude.com/docs/en/api/errors, 2026-11; Gemini, 20 MB: code, 2026-11
  /request_too_large|request payload size exceeds the limit/i,
];
