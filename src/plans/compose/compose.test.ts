import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import {
  allocate,
  type ContextLayers,
  createPromptComposer,
  type Demand,
  type PromptComposerOptions,
  withTask,
} from "./compose.ts";

const demands = (needs: readonly number[], least = 0): Demand[] =>
  [0.4, 0.4, 0.2].map((share, index) => ({ need: needs[index]!, least: index === 1 ? least : 0, share }));

test("a layer gets its share, and what the layers before it do not need", () => {
  expect(allocate(1000, demands([900, 900, 900]))).toEqual([400, 400, 200]);
  expect(allocate(1000, demands([100, 900, 900]))).toEqual([100, 700, 200]);
  expect(allocate(1000, demands([100, 200, 900]))).toEqual([100, 200, 700]);
  expect(allocate(1000, demands([0, 0, 900]))).toEqual([0, 0, 900]);
  expect(allocate(1000, demands([Number.POSITIVE_INFINITY, 100, 50]))).toEqual([400, 100, 50]);
});

test("a layer below its least takes unused tokens, then tokens of later layers, never of earlier ones", () => {
  expect(allocate(1000, demands([900, 900, 50], 500))).toEqual([400, 500, 50]);
  expect(allocate(1000, demands([900, 900, 900], 500))).toEqual([400, 500, 100]);
  expect(allocate(1000, demands([900, 900, 900], 5000))).toEqual([400, 600, 0]);
  expect(allocate(1000, demands([900, 450, 900], 500))).toEqual([400, 450, 150]);
  expect(allocate(1000, demands([900, Number.POSITIVE_INFINITY, 900], Number.POSITIVE_INFINITY))).toEqual([
    400, 600, 0,
  ]);
});

test("grants never add up to more than the total, and no layer gets more than it needs", () => {
  const amount = fc.oneof(fc.nat(2000), fc.constant(Number.POSITIVE_INFINITY));
  const demand = fc.record({ need: amount, least: amount, share: fc.constantFrom(0, 0.2, 0.4, 1) });
  fc.assert(
    fc.property(fc.nat(1500), fc.array(demand, { maxLength: 4 }), (total, all) => {
      const grants = allocate(total, all);
      expect(grants.reduce((sum, grant) => sum + grant, 0)).toBeLessThanOrEqual(total);
      for (const [index, grant] of grants.entries()) {
        expect(grant).toBeGreaterThanOrEqual(0);
        expect(grant).toBeLessThanOrEqual(all[index]!.need);
      }
    }),
  );
});

const counter = await createCounter("bytes/4");
const compose = (layers: ContextLayers, options: Partial<PromptComposerOptions> = {}) =>
  createPromptComposer({ counter, ...options }).compose(layers);
const textOf = (maxTokens: number, layers: ContextLayers): string => compose(layers, { maxTokens }).text;
/** Lines of 20 bytes, 5 tokens each. */
const lines = (tokens: number): string => "nineteen characters\n".repeat(tokens / 5);

describe("the text", () => {
  it("has the layers in order with a rule between them, without empty ones", () => {
    const layers = { project: "PROJECT", fabric: "FABRIC", priorWork: "PRIOR" };
    expect(compose(layers).text).toBe("PROJECT\n\n---\n\nFABRIC\n\n---\n\nPRIOR");
    expect(compose({ project: "PROJECT", fabric: " \n", priorWork: "PRIOR" }).text).toBe("PROJECT\n\n---\n\nPRIOR");
    expect(compose({ fabric: "  as it is \n\n" }).text).toBe("  as it is \n\n");
    expect(compose({})).toEqual({ text: "", tokens: 0, layers: [], omitted: 0, overflow: 0 });
  });

  it("is empty for a budget of 0, and 10,000 tokens at most without one", () => {
    const none = { text: "", tokens: 0, layers: [], omitted: 0, overflow: 0 };
    expect(compose({ project: "a", fabric: "## Discoveries\n- a" }, { maxTokens: 0 })).toEqual(none);
    expect(createPromptComposer({ counter }).maxTokens).toBe(10_000);
    expect(compose({ project: lines(20_000) }).tokens).toBe(10_000 - 2);
  });

  it("keeps a layer whole that fills the whole budget", () => {
    const project = lines(9_500);
    expect(compose({ project }).text).toBe(project);
    const fabric = `## Notes\n${"x".repeat(16_000 - 5)}`;
    expect(compose({ project: "", fabric })).toMatchObject({ text: fabric, tokens: 4_001 });
    const exact = "y".repeat(40_000);
    expect(compose({ priorWork: exact }).text).toBe(exact);
    expect(compose({ priorWork: `${exact}y` }).layers).toMatchObject([{ truncated: true, tokens: 10_000 }]);
  });

  it("counts separators: two layers that would fit without one are cut", () => {
    expect(textOf(5, { project: "12345678", priorWork: "1234" })).toBe("12345678\n\n---\n\n1234");
    const { text, tokens } = compose({ project: "p".repeat(20), priorWork: "1234567890" }, { maxTokens: 8 });
    expect(text).toBe("pppppppppppppppppppp");
    expect(tokens).toBe(5);
  });
});

describe("shares", () => {
  const large = { project: lines(20_000), fabric: `## Notes\n${lines(20_000)}`, priorWork: lines(20_000) };
  const tokensOf = (layers: ContextLayers, options: Partial<PromptComposerOptions> = {}): number[] =>
    compose(layers, options).layers.map(({ tokens }) => tokens);

  it("are 0.4, 0.4 and 0.2", () => {
    const [project, fabric, prior] = tokensOf(large) as [number, number, number];
    expect(project).toBeGreaterThanOrEqual(3_995);
    expect(fabric).toBeGreaterThan(3_980);
    expect(prior).toBeGreaterThan(1_980);
  });

  it("are related to their sum", () => {
    const [project, , prior] = tokensOf(large, { shares: { project: 0.1, fabric: 0.1, priorWork: 0.2 } });
    expect(project).toBeGreaterThan(2_480);
    expect(project).toBeLessThan(2_530);
    expect(prior).toBeGreaterThan(4_980);
  });

  it("roll over to the next layer, and back to the first that was truncated", () => {
    const [, fabric] = tokensOf({ ...large, project: "small" });
    expect(fabric).toBeGreaterThan(7_970);
    const [project] = tokensOf({ ...large, fabric: "small", priorWork: "small" });
    expect(project).toBeGreaterThan(9_980);
    // One item that does not fit leaves its share to the project.
    expect(tokensOf({ ...large, fabric: `## A\n- ${"x".repeat(99_000)}\n## B\n- y` })[0]).toBeGreaterThan(7_900);
  });

  it("give a layer without a share the rest, and a fabric its headings", () => {
    const shares = { project: 0, fabric: 0, priorWork: 1 };
    expect(tokensOf(large, { shares })).toEqual([0, 18, 9_978]);
    expect(tokensOf({ ...large, priorWork: "small" }, { shares })[0]).toBeGreaterThan(9_000);
  });

  it("give the first layers everything if there are very few tokens", () => {
    expect(textOf(1, { project: "abc", fabric: "def", priorWork: "g" })).toBe("abc");
    expect(textOf(1, { project: "hello world this is long" })).toBe("");
    expect(textOf(30, { project: "small project", fabric: "F".repeat(200) })).toMatch(/^small project\n\n---\n\nF+\n/);
    for (let maxTokens = 1; maxTokens <= 40; maxTokens++) {
      const { tokens, layers } = compose(large, { maxTokens });
      expect(tokens).toBeLessThanOrEqual(maxTokens);
      expect(layers.map(({ name }) => name)).toEqual(["project", "fabric", "priorWork"]);
      if (maxTokens >= 9) expect(layers[0]!.tokens).toBeGreaterThan(0);
    }
  });
});

describe("discoveries", () => {
  const discoveries = (tokens: number): string => `## Discoveries\n${"- eighteen letters\n".repeat((tokens * 4) / 19)}`;
  const others = `## Entanglements\n${"- an entanglement\n".repeat(2_000)}`;

  it("take the items of other sections, then the share of prior work", () => {
    const layers = { project: lines(20_000), priorWork: lines(20_000) };
    const within = compose({ ...layers, fabric: `${others}${discoveries(3_000)}` });
    expect(within.text).toContain(discoveries(3_000).trimEnd());
    expect(within.layers.map(({ tokens }) => Math.round(tokens / 100))).toEqual([40, 40, 20]);
    const above = compose({ ...layers, fabric: `${others}${discoveries(5_500)}` });
    expect(above.text).toContain(discoveries(5_500).trimEnd());
    expect(above.text).toContain("## Entanglements\n... and 2000 more entanglements");
    expect(above.layers.map(({ tokens }) => Math.round(tokens / 100))).toEqual([40, 55, 5]);
    expect(above.overflow).toBe(0);
  });

  it("take the headings of other sections next, but never the share of the project", () => {
    const tight = compose({ project: lines(20_000), fabric: `${others}${discoveries(5_985)}` });
    expect(tight.text).toContain(discoveries(5_985).trimEnd());
    expect(tight.text).not.toContain("Entanglements");
    expect(tight.text).toContain("[... truncated, 2000 items omitted]");
    expect(tight.overflow).toBe(0);
    const over = compose({
      project: lines(20_000),
      fabric: `${discoveries(7_000)}${others}`,
      priorWork: "done",
    });
    expect(over.layers[0]!.tokens).toBeGreaterThan(3_990);
    expect(over.overflow).toBeGreaterThan(1_000);
    expect(over.overflow).toBeLessThan(1_030);
    expect(over.text).toMatch(/\n\.\.\. and \d+ more discoveries\n\n\[\.\.\. truncated, \d+ items omitted\]/);
    expect(over.tokens).toBeLessThanOrEqual(10_000);
  });
});

describe("with very few tokens, discoveries that would fit", () => {
  const fabric = "## Discoveries\n- billing is down";

  it("stay if the project's share cannot hold a word", () => {
    const project = `${"`".repeat(16)}typescript\n${"const x = 1;\n".repeat(9)}${"`".repeat(16)}`;
    for (let maxTokens = counter.count(fabric); maxTokens <= 26; maxTokens++)
      expect(compose({ project, fabric }, { maxTokens })).toMatchObject({ text: fabric, overflow: 0 });
    const together = compose({ project, fabric }, { maxTokens: 30 });
    expect(together.layers.every(({ tokens }) => tokens > 0)).toBe(true);
  });

  it("stay if the project's share is empty, and prior work gets the rest", () => {
    const layers = { project: `~~~~${"~".repeat(60)}\ncode`, fabric, priorWork: "done" };
    expect(textOf(14, layers)).toBe(`${fabric}\n\n---\n\ndone`);
  });

  it("lose to the project if they would be cut anyway", () => {
    const long = `${fabric}\n${"- a word\n".repeat(50)}`;
    const { text, overflow } = compose({ project: "word ".repeat(50), fabric: long }, { maxTokens: 9 });
    expect(text).toMatch(/^word [\w ]+\n\[truncated\]$/);
    expect(overflow).toBeGreaterThan(100);
  });
});

describe("prior work", () => {
  /** 3 headings, 2 discoveries; 46 tokens at least. */
  const fabric = [
    `### Completed Phases\n${"- a phase that is done\n".repeat(6)}`,
    `### Unresolved Discoveries\n- the port is taken\n- the cache is stale\n`,
    `### Shared Notes\n${"- a note that was written\n".repeat(6)}`,
  ].join("\n");
  const headings = (text: string): number => text.split("### ").length - 1;

  it("is cut before any heading and any discovery", () => {
    for (let maxTokens = 20; maxTokens < 120; maxTokens++) {
      const layers = { project: lines(100), fabric };
      const [with_, without] = [{ ...layers, priorWork: lines(100) }, layers].map((each) =>
        compose(each, { maxTokens }),
      ) as [ReturnType<typeof compose>, ReturnType<typeof compose>];
      if (headings(with_.text) === 3 && with_.overflow === 0) continue;
      expect([headings(with_.text), with_.overflow]).toEqual([headings(without.text), without.overflow]);
    }
  });

  it("as answers gives what a short one does not need to the long ones, and keeps the end of each", () => {
    const long = Array.from({ length: 200 }, (_, line) => `line ${line}`).join("\n");
    const answers = ["short", long, long].map((text, index) => ({ heading: `h${index}`, text }));
    const { text, layers } = compose({ priorWork: answers }, { maxTokens: 300 });
    const [, short = "", ...others] = text.split("### ");
    expect(short).toBe("h0\n\n> short\n\n");
    for (const part of others)
      expect(part.trimEnd()).toMatch(/^h\d\n\n\[\.\.\. truncated, \d+ lines omitted\]\n(> line \d+\n)+> line 199$/);
    const shown = text.split("> line").length - 1;
    expect(layers).toMatchObject([{ name: "priorWork", truncated: true, omitted: 400 - shown }]);
    expect(shown).toBeGreaterThan(70);
  });

  it("as answers with an open fence is whole wherever nothing is left out", () => {
    const answers = [`${"x".repeat(150)}\nend`, "say\n```\n!"].map((text) => ({ heading: "h", text }));
    for (let maxTokens = 40; maxTokens < 100; maxTokens += 1) {
      const [layer] = compose({ priorWork: answers }, { maxTokens }).layers;
      expect(layer!.truncated).toBe(layer!.omitted > 0);
    }
  });

  it("as answers keeps the first headings if not all fit", () => {
    const answers = Array.from({ length: 50 }, (_, index) => ({ heading: `phase ${index}`, text: "done" }));
    const { text } = compose({ priorWork: answers }, { maxTokens: 100 });
    expect(text).toMatch(
      /### phase 0\n\n\[\.\.\. truncated, 1 line omitted\]\n\n### phase 1\n(?:.*\n)+\n\[\.\.\. truncated, \d+ answers omitted\]$/,
    );
  });

  it("gets the rest if discoveries are too long for any budget", () => {
    const endless = `### Discoveries\n- short\n- ${"x".repeat(9_000)}\n`;
    const { text, overflow } = compose({ fabric: endless, priorWork: "done" }, { maxTokens: 100 });
    expect(overflow).toBeGreaterThan(2_000);
    expect(text).toMatch(/^### Discoveries\n- short\n\.\.\. and 1 more discoveries\n/);
    expect(text).toMatch(/\n\n---\n\ndone$/);
  });
});

test("a layer that leaves a fence open does not swallow the next one", () => {
  const { text, layers } = compose({ project: "see:\n\n```sh\nls", fabric: "## Notes\n- a" });
  expect(text).toBe("see:\n\n```sh\nls\n```\n\n---\n\n## Notes\n- a");
  expect(layers.map(({ truncated }) => truncated)).toEqual([false, false]);
});

test("a fence that ends with its list item is not closed again", () => {
  const project = "# Shop\n\n- Test:\n- ```sh\n  npm test\n\nOrders are never deleted.\n";
  const fabric = "## Discoveries\n- d1\n";
  expect(compose({ project, fabric }).text).toBe(`${project}\n\n---\n\n${fabric}`);
});

test("half of a surrogate pair becomes U+FFFD", () => {
  const { text, tokens } = compose({ project: "a\ud83d", fabric: "\ude00b" });
  expect(text).toBe("a\ufffd\n\n---\n\n\ufffdb");
  expect(tokens).toBe(counter.count(text));
});

test("a text that fits its share stays whole, whatever the other layers are", () => {
  const large = { fabric: `## Notes\n${lines(20_000)}`, priorWork: lines(20_000) };
  for (const maxTokens of [37, 100, 999, 10_000]) {
    const budget = createPromptComposer({ counter, maxTokens });
    const project = "x".repeat(budget.shareOf("project") * 4);
    expect(budget.compose({ ...large, project }).layers[0]).toMatchObject({
      name: "project",
      truncated: false,
    });
    const larger = budget.compose({ ...large, project: `${project}${"y".repeat(40)}` });
    expect(larger.layers[0]!.truncated).toBe(true);
  }
  expect(createPromptComposer({ counter }).shareOf("priorWork")).toBe(1_999);
  expect(createPromptComposer({ counter, maxTokens: 2 }).shareOf("project")).toBe(0);
});

test("a task comes after its context, or alone without one", () => {
  expect(withTask("# Shop", "Fix it")).toBe("# Shop\n\n---\n\nFix it");
  expect(withTask("", "Fix it")).toBe("Fix it");
});

test("wrong limits and shares are refused at once", () => {
  const code = (options: Partial<PromptComposerOptions>) => () => createPromptComposer({ counter, ...options });
  const refused = expect.objectContaining({ code: "invalid_argument" });
  for (const maxTokens of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "9" as never])
    expect(code({ maxTokens })).toThrow(refused);
  for (const share of [-0.1, 1.1, Number.NaN, "x" as never])
    expect(code({ shares: { fabric: share } })).toThrow(refused);
  expect(code({ shares: { project: 0, fabric: 0, priorWork: 0 } })).toThrow("all shares are 0");
});

test("without a counter four bytes are one token", () => {
  const { text, tokens } = createPromptComposer({ maxTokens: 10 }).compose({ project: "x".repeat(100) });
  expect([text, tokens]).toEqual(["xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[truncated]", 10]);
  expect(createPromptComposer().maxTokens).toBe(10_000);
});

test("wrong options are refused at once, with the known ones", () => {
  const refusal = (call: () => unknown): unknown => {
    try {
      return call();
    } catch (error) {
      const { code, message, hint } = error as { code: string; message: string; hint: string };
      expect(code).toBe("invalid_argument");
      return `${message}. ${hint}`;
    }
  };
  const created = (options: unknown) => refusal(() => createPromptComposer(options as never));
  const composed = (layers: unknown) => refusal(() => compose(layers as never));
  expect(created({ counter: null })).toMatch(/^counter is null\. /);
  expect(created({ counter: "bytes/4" })).toBe(
    'counter is "bytes/4". Pass a counter, such as await createCounter("bytes/4").',
  );
  expect(created({ counter, maxToken: 5 })).toBe(
    'unknown key "maxToken" in options. Did you mean "maxTokens"? Known keys are counter, maxTokens, shares.',
  );
  for (const options of [null, 5, [counter]]) expect(created(options)).toMatch(/^options is /);
  expect(created({ counter, shares: { prior: 1 } })).toMatch(
    /^unknown key "prior" in shares\. Did you mean "priorWork"\?/,
  );
  expect(created({ counter, shares: { project: "0.5" } })).toMatch(/^shares\.project is "0\.5"/);
  expect(composed(null)).toMatch(/^layers is null\. Use an object\. Known keys are project, fabric, priorWork\.$/);
  expect(composed("text")).toMatch(/^layers is "text"/);
  expect(composed({ project: 5 })).toBe("project is 5. Use a string.");
  expect(composed({ priorWork: [{ heading: "a" }] })).toMatch(/^priorWork\[0\]\.text is null\. Use a string\.$/);
  expect(composed({ prior: "done" })).toMatch(/^unknown key "prior" in layers\. Did you mean "priorWork"\?/);
});

it("names an answer without a heading", async () => {
  const composer = createPromptComposer({ counter: await createCounter("bytes/4"), maxTokens: 200 });
  const { text } = composer.compose({ priorWork: [{ heading: " \n", text: "" }] });
  expect(text).toContain("### (no heading)");
});
