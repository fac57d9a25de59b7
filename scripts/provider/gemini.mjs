/** Gemini's generateContent, streamed or not. */
import { createPrefixCache } from "./prefix-cache.mjs";
import { eventLine, totalOf } from "./wire.mjs";

/** @returns {import("./wire.mjs").Api} */
export function createGeminiApi({ settings, countBlock }) {
  const cache = createPrefixCache(settings);
  const measure = ({ tools = [], systemInstruction, contents }) =>
    [...tools, ...(systemInstruction ? [systemInstruction] : []), ...contents].map((part) => {
      return { text: JSON.stringify(part), tokens: countBlock(part) };
    });
  const read = {
    tools: ({ tools = [] }) =>
      tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
    steps: ({ contents }) => partsWith(contents, "functionCall").length,
    results: ({ contents }) =>
      partsWith(contents, "functionResponse").map(({ response }) => response.output ?? JSON.stringify(response)),
    fail,
  };
  const receive = (body) => {
    const problem = settings.checks ? findProblem(body) : undefined;
    if (problem !== undefined) return refuse(problem);
    const blocks = measure(body);
    const tokens = blocks.reduce((sum, block) => sum + block.tokens, 0);
    const { contextWindow: window } = settings;
    if (tokens > window)
      return refuse(`The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`);
    // ai.google.dev, 2026-10-13: implicit caching from 4,096 tokens on.
    return { tokens: cache.billSteps("gemini", blocks, { minimum: 4_096, lifetimeMs: 5 * 60_000 }) };
  };
  const count = (body) => ({ count: { totalTokens: measure(body).reduce((sum, { tokens }) => sum + tokens, 0) } });
  return [
    { matches: /:countTokens$/, ...read, receive: (body) => count(body.generateContentRequest ?? body) },
    {
      matches: /:(?:stream)?generateContent$/i,
      ...read,
      receive,
      whole: contentFor,
      stream: (facts) => [eventLine(contentFor(facts))],
    },
  ];
}

function partsWith(contents, field) {
  return contents.flatMap(({ parts }) => parts).flatMap((part) => part[field] ?? []);
}

function findProblem({ contents }) {
  if (!Array.isArray(contents) || contents.length === 0)
    return "* GenerateContentRequest.contents: contents is not specified";
  const turns = [];
  for (const { role = "user", parts } of contents) {
    if (turns.at(-1)?.role === role) turns.at(-1).parts.push(...parts);
    else turns.push({ role, parts: [...parts] });
  }
  const isUneven = turns.some((turn, index) => {
    const calls = partsWith([turn], "functionCall").length;
    const results = partsWith(turns.slice(index + 1, index + 2), "functionResponse").length;
    // A resumed Gemini CLI 0.61 sends every result twice, so more results than calls pass.
    return calls === 0 ? results > 0 : results < calls;
  });
  return isUneven
    ? "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
    : undefined;
}

function refuse(message) {
  return { refusal: { status: 400, json: errorBody(400, message) }, message };
}

const statuses = { 400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 529: "UNAVAILABLE" };

function errorBody(code, message) {
  return { error: { code, message, status: statuses[code] } };
}

function fail(status) {
  return errorBody(
    status,
    status === 429 ? "Resource has been exhausted (e.g. check quota)." : "The model is overloaded.",
  );
}

function contentFor({ turn, received: { tokens } }) {
  const parts = [
    ...(turn.text ? [{ text: turn.text }] : []),
    ...(turn.calls ?? []).map(({ name, input }) => ({ functionCall: { name, args: input } })),
  ];
  const total = totalOf(tokens);
  const usage = {
    promptTokenCount: total,
    cachedContentTokenCount: tokens.read,
    candidatesTokenCount: turn.outputTokens,
    totalTokenCount: total + turn.outputTokens,
  };
  return {
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
    usageMetadata: turn.usage ?? usage,
  };
}
