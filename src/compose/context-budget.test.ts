import { describe, expect, it, test } from "vitest";
import { createCounter } from "../tokens/index.ts";
import { type ContextLayers, withTask } from "./compose.ts";
import { type ContextBudgetOptions, createContextBudget } from "./context-budget.ts";

const counter = await createCounter("bytes/4");
const compose = (layers: ContextLayers, options: Partial<ContextBudgetOptions> = {}) =>
  createContextBudget({ counter, ...options }).compose(layers);
const textOf = (maxTokens: number, layers: ContextLayers): string => compose(layers, { maxTokens }).text;
/** Lines of 20 bytes, 5 tokens each. */
const lines = (tokens: number): string => "nineteen characters\n".repeat(tokens / 5);

describe("the text", () => {
  it("has the layers in their order with a rule between them, and empty ones vanish", () => {
    const layers = { project: "PROJECT", fabric: "FABRIC", priorWork: "PRIOR" };
    expect(compose(layers).text).toBe("PROJECT\n\n---\n\nFABRIC\n\n---\n\nPRIOR");
    expect(compose({ project: "PROJECT", fabric: " \n", priorWork: "PRIOR" }).text).toBe(
      "PROJECT\n\n---\n\nPRIOR",
    );
    expect(compose({ fabric: "  as it is \n\n" }).text).toBe("  as it is \n\n");
    expect(compose({})).toEqual({ text: "", tokens: 0, layers: [], omitted: 0, overflow: 0 });
  });

  it("is empty for a budget of 0, and 10,000 tokens at most without one", () => {
    const none = { text: "", tokens: 0, layers: [], omitted: 0, overflow: 0 };
    expect(compose({ project: "a", fabric: "## Discoveries\n- a" }, { maxTokens: 0 })).toEqual(none);
    expect(createContextBudget({ counter }).maxTokens).toBe(10_000);
    expect(compose({ project: lines(20_000) }).tokens).toBe(10_000 - 2);
  });

  it("has a layer whole that leaves room for nothing but itself", () => {
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
  const tokensOf = (layers: ContextLayers, options: Partial<ContextBudgetOptions> = {}): number[] =>
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
    expect(tokensOf({ ...large, fabric: `## A\n- ${"x".repeat(99_000)}\n## B\n- y` })[0]).toBeGreaterThan(
      7_900,
    );
  });

  it("without a share a layer gets what is left over, and a fabric its headings", () => {
    const shares = { project: 0, fabric: 0, priorWork: 1 };
    expect(tokensOf(large, { shares })).toEqual([0, 18, 9_978]);
    expect(tokensOf({ ...large, priorWork: "small" }, { shares })[0]).toBeGreaterThan(9_000);
  });

  it("of very few tokens the first layers get what there is", () => {
    expect(textOf(1, { project: "abc", fabric: "def", priorWork: "g" })).toBe("abc");
    expect(textOf(1, { project: "hello world this is long" })).toBe("");
    expect(textOf(30, { project: "small project", fabric: "F".repeat(200) })).toMatch(
      /^small project\n\n---\n\nF+\n/,
    );
    for (let maxTokens = 1; maxTokens <= 40; maxTokens++) {
      const { tokens, layers } = compose(large, { maxTokens });
      expect(tokens).toBeLessThanOrEqual(maxTokens);
      expect(layers.map(({ name }) => name)).toEqual(["project", "fabric", "priorWork"]);
      if (maxTokens >= 9) expect(layers[0]!.tokens).toBeGreaterThan(0);
    }
  });
});

describe("discoveries", () => {
  const discoveries = (tokens: number): string =>
    `## Discoveries\n${"- eighteen letters\n".repeat((tokens * 4) / 19)}`;
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

  it("then the headings of other sections, but never the share of the project", () => {
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

describe("of very few tokens, discoveries that would fit", () => {
  const fabric = "## Discoveries\n- billing is down";

  it("are not lost to a project of which its share cannot hold a word", () => {
    const project = `${"`".repeat(16)}typescript\n${"const x = 1;\n".repeat(9)}${"`".repeat(16)}`;
    for (let maxTokens = counter.count(fabric); maxTokens <= 26; maxTokens++)
      expect(compose({ project, fabric }, { maxTokens })).toMatchObject({ text: fabric, overflow: 0 });
    const together = compose({ project, fabric }, { maxTokens: 30 });
    expect(together.layers.every(({ tokens }) => tokens > 0)).toBe(true);
  });

  it("stay where the project can hold none, and prior work gets what is left", () => {
    const layers = { project: `~~~~${"~".repeat(60)}\ncode`, fabric, priorWork: "done" };
    expect(textOf(14, layers)).toBe(`${fabric}\n\n---\n\ndone`);
  });

  it("give way to the project where they would be cut all the same", () => {
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

  it("gives way before any heading and anything of the discoveries", () => {
    for (let maxTokens = 20; maxTokens < 120; maxTokens++) {
      const layers = { project: lines(100), fabric };
      const [with_, without] = [{ ...layers, priorWork: lines(100) }, layers].map((each) =>
        compose(each, { maxTokens }),
      ) as [ReturnType<typeof compose>, ReturnType<typeof compose>];
      if (headings(with_.text) === 3 && with_.overflow === 0) continue;
      expect([headings(with_.text), with_.overflow]).toEqual([headings(without.text), without.overflow]);
    }
  });

  it("gets what is left where discoveries are too long for any room", () => {
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

test("a fence that ends with its list item is not closed behind it, where that would open one", () => {
  const project = "# Shop\n\n- Test:\n- ```sh\n  npm test\n\nOrders are never deleted.\n";
  const fabric = "## Discoveries\n- d1\n";
  expect(compose({ project, fabric }).text).toBe(`${project}\n\n---\n\n${fabric}`);
});

test("half of a surrogate pair becomes what UTF-8 makes of it", () => {
  const { text, tokens } = compose({ project: "a\ud83d", fabric: "\ude00b" });
  expect(text).toBe("a\ufffd\n\n---\n\n\ufffdb");
  expect(tokens).toBe(counter.count(text));
});

test("what is made for its share stays whole beside any others", () => {
  const large = { fabric: `## Notes\n${lines(20_000)}`, priorWork: lines(20_000) };
  for (const maxTokens of [37, 100, 999, 10_000]) {
    const budget = createContextBudget({ counter, maxTokens });
    const project = "x".repeat(budget.shareOf("project") * 4);
    expect(budget.compose({ ...large, project }).layers[0]).toMatchObject({
      name: "project",
      truncated: false,
    });
    const larger = budget.compose({ ...large, project: `${project}${"y".repeat(40)}` });
    expect(larger.layers[0]!.truncated).toBe(true);
  }
  expect(createContextBudget({ counter }).shareOf("priorWork")).toBe(1_999);
  expect(createContextBudget({ counter, maxTokens: 2 }).shareOf("project")).toBe(0);
});

test("a task stands behind its context, and alone where there is none", () => {
  expect(withTask("# Shop", "Fix it")).toBe("# Shop\n\n---\n\nFix it");
  expect(withTask("", "Fix it")).toBe("Fix it");
});

test("wrong limits and shares are refused at once", () => {
  const code = (options: Partial<ContextBudgetOptions>) => () => createContextBudget({ counter, ...options });
  const refused = expect.objectContaining({ code: "invalid_argument" });
  for (const maxTokens of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "9" as never])
    expect(code({ maxTokens })).toThrow(refused);
  for (const share of [-0.1, 1.1, Number.NaN, "x" as never])
    expect(code({ shares: { fabric: share } })).toThrow(refused);
  expect(code({ shares: { project: 0, fabric: 0, priorWork: 0 } })).toThrow("all shares are 0");
});

test("what cannot be meant is refused at once, with what can be", () => {
  const refusal = (call: () => unknown): unknown => {
    try {
      return call();
    } catch (error) {
      const { code, message, hint } = error as { code: string; message: string; hint: string };
      expect(code).toBe("invalid_argument");
      return `${message}. ${hint}`;
    }
  };
  const created = (options: unknown) => refusal(() => createContextBudget(options as never));
  const composed = (layers: unknown) => refusal(() => compose(layers as never));
  expect(created({})).toMatch(/^counter is undefined\. /);
  expect(created({ counter: "bytes/4" })).toBe(
    'counter is "bytes/4". Pass what await createCounter("bytes/4") gives.',
  );
  expect(created({ counter, maxToken: 5 })).toBe(
    'unknown key "maxToken" of options. Did you mean "maxTokens"? Known are counter, maxTokens, shares.',
  );
  for (const options of [undefined, null, 5, [counter]]) expect(created(options)).toMatch(/^options is /);
  expect(created({ counter, shares: { prior: 1 } })).toMatch(
    /^unknown key "prior" of shares\. Did you mean "priorWork"\?/,
  );
  expect(created({ counter, shares: { project: "0.5" } })).toMatch(/^shares\.project is "0\.5"/);
  expect(composed(null)).toMatch(/^layers is null\. Use an object\. Known are project, fabric, priorWork\.$/);
  expect(composed("text")).toMatch(/^layers is "text"/);
  expect(composed({ project: 5 })).toBe("project is 5. Use a string.");
  expect(composed({ prior: "done" })).toMatch(/^unknown key "prior" of layers\. Did you mean "priorWork"\?/);
});
