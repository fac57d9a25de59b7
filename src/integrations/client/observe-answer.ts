/** Reads the usage in an answer as it passes, whole or streamed. What the caller gets is the SDK's own object. */

export type Observe = (usage: unknown) => void;

export function observeAnswer<Answer>(answer: Answer, observe: Observe): Answer {
  if (isStream(answer)) observeStream(answer, observe);
  else report(usageIn(answer) ?? {}, observe);
  return answer;
}

type Fields = Readonly<Record<string, unknown>>;
type EventStream = AsyncIterable<unknown>;

function isStream(answer: unknown): answer is EventStream {
  return typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer;
}

/** On the stream itself, so that it stays an instance of its class. One that is split with `tee` is not observed. */
function observeStream(stream: EventStream, observe: Observe): void {
  const iterate = stream[Symbol.asyncIterator];
  Object.defineProperty(stream, Symbol.asyncIterator, {
    value: () => observeEvents({ [Symbol.asyncIterator]: () => iterate.call(stream) }, observe),
    configurable: true,
    writable: true,
  });
}

async function* observeEvents(events: EventStream, observe: Observe): AsyncGenerator<unknown> {
  let usage: Fields = {};
  try {
    for await (const event of events) {
      // What is told first counts: at its end Anthropic also tells what tools of its own read meanwhile.
      const found = usageIn(event);
      if (found !== undefined) usage = { ...found, ...usage };
      yield event;
    }
  } finally {
    report(usage, observe);
  }
}

/** Anthropic: on the answer, on message_start's message and on message_delta. OpenAI: on the answer or the last chunk, and on the
 *  response of an event. */
function usageIn(value: unknown): Fields | undefined {
  const { usage, message, response } = Object(value) as Fields;
  const found: unknown = usage ?? Object(message).usage ?? Object(response).usage;
  if (typeof found !== "object" || found === null) return undefined;
  return Object.fromEntries(Object.entries(found).filter(([, field]) => (field ?? null) !== null));
}

// Tools that the provider runs itself ask the model again within one answer: its input then says nothing about the request.
function report(usage: Fields, observe: Observe): void {
  const ran = Object.values(Object(usage.server_tool_use)).some((count) => Number(count) > 0);
  if (!ran && Object.keys(usage).length > 0) observe(usage);
}
