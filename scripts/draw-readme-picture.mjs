/**
 * Draws the picture of the README: the size of each request of a long agent session, without trimming and with it.
 *
 *    node scripts/draw-readme-picture.mjs SESSION.jsonl [FILE]
 *
 * The sizes come from the trimmer, the costs from `plimsoll replay`. Build first. `DOCS_UPDATE=1 npx vitest run
 * test/docs-run.test.ts -t picture` draws it from the session that the README replays.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createTrimmer } from "plimsoll/history";

const root = fileURLToPath(new URL("..", import.meta.url));
const [session, file = `${root}docs/public/agent-session.svg`] = process.argv.slice(2);
const [contextWindow, reserve, prefixTokens] = [128_000, 16_000, 20_000];
const model = "claude-sonnet-5";

const messages = readFileSync(session, "utf8")
  .split("\n")
  .map((line) => JSON.parse(line));
writeFileSync(file, picture(await sizesOf(messages), costsOf(session)));

/** The tokens of each request, as the agent has them and as the trimmer sends them. */
async function sizesOf(messages) {
  const trimmer = await createTrimmer({ contextWindow, reserve, prefixTokens, model });
  const calls = messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  return calls.map((end) => {
    const { stats, isEpoch } = trimmer.reduce({ messages: messages.slice(0, end) });
    return { before: prefixTokens + stats.before, after: prefixTokens + stats.after, isEpoch };
  });
}

function costsOf(path) {
  const command = `${root}dist/cli/main.js`;
  const options = ["--window", contextWindow, "--model", model, "--policy", "none,economic", "--json"];
  const output = execFileSync(process.execPath, [command, "replay", path, ...options.map(String)]);
  const [none, economic] = JSON.parse(output).results;
  return { none, economic };
}

function picture(calls, { none, economic }) {
  const plot = { left: 64, right: 708, top: 84, bottom: 300, topTokens: 256_000 };
  const x = (call) => plot.left + ((plot.right - plot.left) * call) / (calls.length - 1);
  const y = (tokens) => plot.bottom - ((plot.bottom - plot.top) * Math.min(tokens, plot.topTokens)) / plot.topTokens;
  const points = (list) => list.map(([call, tokens]) => `${x(call).toFixed(1)},${y(tokens).toFixed(1)}`).join(" ");
  const grown = calls.findIndex(({ before }) => before > plot.topTokens);
  const without = calls.slice(0, grown + 1).map(({ before }, call) => [call, before]);
  const withTrimming = calls.map(({ after }, call) => [call, after]);
  const refused = calls.findIndex(({ before }) => before > contextWindow);
  const area = `${points(withTrimming)} ${x(calls.length - 1)},${plot.bottom} ${plot.left},${plot.bottom}`;
  const label = (text, at, kind = "") => `<text x="${at[0]}" y="${at[1]}" class="${kind}">${text}</text>`;
  const ticks = [0, 64_000, 128_000, 192_000, 256_000].map((tokens) =>
    label(tokens === 0 ? "0" : `${tokens / 1_000}k`, [plot.left - 8, y(tokens) + 4], "tick end"),
  );
  const marks = calls.flatMap(({ isEpoch }, call) =>
    isEpoch ? [`<path d="M${x(call).toFixed(1)} ${plot.bottom + 3}l4 7h-8z" class="mark"/>`] : [],
  );
  const title = `An agent session of ${calls.length} calls: size of each request in tokens`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 372" role="img" aria-label="${title}. Without trimming, requests pass the window of 128,000 tokens at call ${refused + 1}. With Plimsoll they stay below it, and the input costs ${share(none, economic)} percent less.">
<style>
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .head { font-size: 16px; font-weight: 600; } .tick { font-size: 11px; fill: #59636e; } .end { text-anchor: end; }
  .panel { fill: #ffffff; stroke: #d1d9e0; } .none { stroke: #cf222e; } .ours { stroke: #0969da; } .area { fill: #0969da; opacity: .14; }
  .red { fill: #cf222e; } .blue { fill: #0969da; } .limit { stroke: #59636e; } .mark { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .tick { fill: #9198a1; } .panel { fill: #0d1117; stroke: #3d444d; } .none { stroke: #ff7b72; }
    .ours { stroke: #58a6ff; } .area { fill: #58a6ff; } .red { fill: #ff7b72; } .blue, .mark { fill: #58a6ff; } .limit { stroke: #9198a1; }
  }
</style>
<rect x=".5" y=".5" width="759" height="371" rx="10" class="panel"/>
${label(title, [24, 34], "head")}
${label(`without: ${millions(none.cost)} billed tokens, refused from call ${refused + 1} on`, [24, 58], "red")}
${label(`with Plimsoll: ${millions(economic.cost)} billed tokens, every call fits`, [416, 58], "blue")}
${ticks.join("\n")}
<path d="M${plot.left} ${y(contextWindow)}H${plot.right}" class="limit" stroke-dasharray="5 4"/>
${label("the model's window", [plot.right, y(contextWindow) - 7], "tick end")}
<polygon points="${area}" class="area"/>
<polyline points="${points(withTrimming)}" fill="none" stroke-width="2" class="ours"/>
<polyline points="${points(without)}" fill="none" stroke-width="2.5" class="none"/>
${label(`↑ grows to ${Math.round(calls.at(-1).before / 1_000)}k`, [x(grown) + 8, plot.top + 10], "red")}
<path d="M${plot.left} ${plot.bottom}H${plot.right}" class="limit"/>
${marks.join("\n")}
${label("call 1", [plot.left, plot.bottom + 26], "tick")}
${label(`call ${calls.length}`, [plot.right, plot.bottom + 26], "tick end")}
${label(`▲ Plimsoll clears old tool results, ${marks.length} times. Between these calls each request starts with the bytes of the last one,`, [24, 346], "tick")}
${label("so the provider's prompt cache still matches. Billed tokens: the cost of all input, in tokens at full price.", [24, 361], "tick")}
</svg>
`;
}

function millions(tokens) {
  return `${(tokens / 1e6).toFixed(1)}M`;
}

function share(none, economic) {
  return Math.round(100 * (1 - economic.cost / none.cost));
}
