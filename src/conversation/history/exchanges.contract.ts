/** Histories in Anthropic's format for tests, built from exchanges: a turn with a call, and its result. */
export interface ExchangeOptions {
  /** In characters. */
  readonly result?: number;
  readonly input?: number;
  readonly text?: number;
  readonly thinking?: number;
  readonly tool?: string;
  /** What the person says beside the result. */
  readonly said?: string;
}

export function exchange(index: number, options: ExchangeOptions = {}): object[] {
  const { result = 800, input = 0, text = 0, thinking = 0, tool = "read_file", said } = options;
  const id = `call_${index}`;
  const path = `src/file-${index}.ts`;
  const content = [
    ...(thinking > 0 ? [thought(fill(`thought ${index} `, thinking), `signature-${index}`)] : []),
    ...(text > 0 ? [{ type: "text", text: fill(`remark ${index} `, text) }] : []),
    {
      type: "tool_use",
      id,
      name: tool,
      input: { file_path: path, ...(input > 0 && { body: fill("in ", input) }) },
    },
  ];
  const results: object[] = [{ type: "tool_result", tool_use_id: id, content: fill(`line ${index}\n`, result) }];
  if (said !== undefined) results.push({ type: "text", text: said });
  return [
    { role: "assistant", content },
    { role: "user", content: results },
  ];
}

export function exchanges(count: number, options: ExchangeOptions = {}, from = 0): object[] {
  return Array.from({ length: count }, (_each, index) => exchange(from + index, options)).flat();
}

export function user(text: string): object {
  return { role: "user", content: [{ type: "text", text }] };
}

export function assistant(text: string): object {
  return { role: "assistant", content: [{ type: "text", text }] };
}

export function fill(words: string, characters: number): string {
  return words.repeat(Math.ceil(characters / words.length)).slice(0, characters);
}

function thought(thinking: string, signature: string): object {
  return { type: "thinking", thinking, signature };
}
