/** The page of `replay --html` in a real browser: Chromium, at /usr/bin/chromium or where CHROMIUM says. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generateSession } from "../generate/generate-session.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const hasBrowser = existsSync(executablePath);
if (!hasBrowser) console.log(`the replay page is not tested: no browser at ${executablePath} (set CHROMIUM)`);

const deepTurns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 1_500;
/** Each would run if it were taken for markup or script. */
const attacks = [
  "</script><script>document.title='taken'</script>",
  "<img src=x onerror=\"document.title='taken'\">",
  "<!--<script>",
  "\u2028document.title='taken'\u2029",
];
const hostileName = "<img src=x onerror=alert(1)>\u2028'\"&.jsonl";

// Everyday runs test the page as text: src/web/replay-page.test.ts.
describe.skipIf(!hasBrowser)("the replay page (skipped where no Chromium is installed)", { tags: ["deep"] }, () => {
  let sandbox: Sandbox;
  let browser: Browser;
  beforeAll(async () => {
    sandbox = createSandbox();
    write("coding.jsonl", generateSession({ seed: 1, turns: 120 }).messages);
    write("short.jsonl", generateSession({ seed: 2, turns: 6 }).messages);
    write(hostileName, [
      { role: "user", content: attacks.join(" ") },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "a", name: attacks[0], input: { a: attacks } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: attacks.join("\n") }] },
      { role: "assistant", content: attacks.join(" ") },
    ]);
    const options = ["--window", "48000,200000", "--reserve", "4000"];
    await makePage("page.html", ["coding.jsonl", "short.jsonl", hostileName, ...options]);
    write("tiny/tiny.jsonl", [
      { role: "user", content: "hi" },
      { role: "assistant", content: "yes" },
    ]);
    await makePage("alone.html", ["tiny", "--policy", "none"]);
    await makePage("tiny.html", ["tiny", "--prefix-tokens", "0"]);
    browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--headless", "--disable-background-networking"],
    });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    sandbox.remove();
  });

  function write(path: string, messages: readonly object[]): void {
    sandbox.write(path, messages.map((message) => JSON.stringify(message)).join("\n"));
  }

  async function makePage(file: string, args: readonly string[]): Promise<void> {
    const { code, stderr } = await sandbox.call(["replay", ...args, "--html", file]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`wrote ${file}`) });
  }

  /** The page of a long session takes seconds to make, so only the tests that show it make it. */
  let hasLongPage = false;
  async function makeLongPage(): Promise<void> {
    if (hasLongPage) return;
    write("long/long.jsonl", generateSession({ seed: 3, turns: deepTurns }).messages);
    await makePage("long.html", ["long", "--policy", "none,economic", "--window", "200000"]);
    hasLongPage = true;
  }

  /** Opens a page, and fails on any error in it, any dialog and anything that it loads. */
  async function open(file: string, options: BrowserContextOptions, look: (page: Page) => Promise<void>) {
    if (file === "long.html") await makeLongPage();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const trouble: string[] = [];
    context.on("request", (request) => {
      const url = request.url();
      if (!url.endsWith(`/${file}`) && !url.startsWith("data:")) trouble.push(`loads ${url}`);
    });
    const page = await context.newPage();
    page.on("pageerror", (error) => trouble.push(error.message));
    page.on("console", (message) => trouble.push(message.text()));
    page.on("dialog", (dialog) => {
      trouble.push(`dialog ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(`file://${join(sandbox.cwd, file)}`);
    // A card is drawn when it comes near the view, and on a phone the first one is far below.
    const first = page.locator(".card").first();
    await first.scrollIntoViewIfNeeded();
    await first.locator(".numbers dd").first().waitFor();
    await look(page);
    await context.close();
    expect(trouble).toEqual([]);
  }

  const card = (page: Page, name: string) => page.locator(".card", { has: page.locator("h3", { hasText: name }) });

  test("shows every window and policy, and a card with a drawn timeline for each session", async () => {
    await open("page.html", {}, async (page) => {
      expect(await page.title()).toBe("Plimsoll replay");
      expect(await page.locator("tbody tr").count()).toBe(6);
      expect(await page.locator("tbody tr.chosen").innerText()).toMatch(/48,000\s+economic/);
      expect(await page.locator(".card").count()).toBe(3);
      const coding = card(page, "coding.jsonl");
      await coding.scrollIntoViewIfNeeded();
      expect(await coding.locator("svg.timeline path[fill]").count()).toBe(7);
      expect(await coding.locator("svg.timeline .mark").count()).toBeGreaterThan(0);
      expect(await coding.locator("svg.timeline text.limit").textContent()).toBe("window 48k, 44k without the reserve");
      expect(await coding.locator("svg.costs .line").count()).toBe(3);
      expect(await coding.locator(".kinds").first().innerText()).toMatch(/prefix\s+20,003\s+user/);
    });
  });

  test("shows dollars with their price, and what the epochs removed, by tool and by file", async () => {
    await open("page.html", {}, async (page) => {
      const facts = await page.locator("header").innerText();
      expect(facts).toMatch(
        /Dollars are for input\. anthropic's default: \$[\d.]+ per million input tokens, as of 20\d\d-\d\d/,
      );
      expect(await page.locator("tbody td[data-column='$']").first().innerText()).toMatch(/^\$\d+\.\d\d$/);
      const coding = card(page, "coding.jsonl");
      await coding.scrollIntoViewIfNeeded();
      expect(await coding.locator(".numbers").innerText()).toMatch(/\$\s+\$\d/);
      expect(await coding.locator(".call").innerText()).toMatch(/cost [\d,]+ \(\$[\d.]+\)/);
      const removed = coding.locator(".removed");
      expect(await removed.innerText()).toMatch(
        /^(This epoch|The epoch at call \d+) removed or shortened [\d,]+ tokens: \d+ × /,
      );
      expect(await removed.innerText()).toMatch(/ Largest: .+ \([\d,]+\)\.$/);
      await coding.getByRole("slider").focus();
      await page.keyboard.press("Home");
      expect(await removed.innerText()).toBe("Nothing is trimmed up to this call.");
    });
  });

  test("shows what the client recorded, as a figure and as a line beside the simulated cost", async () => {
    const usage = { input_tokens: 900, cache_read_input_tokens: 400, output_tokens: 20 };
    const line = (type: string, uuid: string, message: object, parentUuid: string | null) => ({
      ...{ type, uuid, parentUuid, sessionId: "s", timestamp: "2026-11-01T10:00:00Z", message },
    });
    const answer = (id: string) => ({
      ...{ id, role: "assistant", model: "claude-sonnet-5", usage },
      content: [{ type: "text", text: `answer ${id}` }],
    });
    write("recorded/recorded.jsonl", [
      line("user", "u1", { role: "user", content: "one" }, null),
      line("assistant", "a1", answer("m1"), "u1"),
      line("user", "u2", { role: "user", content: "two" }, "a1"),
      line("assistant", "a2", answer("m2"), "u2"),
    ]);
    await makePage("recorded.html", ["recorded", "--policy", "none,economic", "--prefix-tokens", "0"]);
    await open("recorded.html", {}, async (page) => {
      expect(await page.locator(".notes").innerText()).toMatch(
        /^recorded: 2 answers, 2,600 input tokens, .*; none: 2 calls/,
      );
      expect(await page.locator("svg.costs .line.recorded").count()).toBe(1);
      expect(await page.locator(".kinds.single").innerText()).toMatch(/recorded\s+1\.9k · \$/);
    });
  });

  test("choosing a window or a policy, in the table or above the sessions, changes what is drawn", {
    tags: ["deep"],
  }, async () => {
    await open("page.html", {}, async (page) => {
      const numbers = () => card(page, "coding.jsonl").locator(".numbers").innerText();
      const economic = await numbers();
      await page.getByRole("radio", { name: "none" }).check();
      const none = await numbers();
      expect(none).not.toBe(economic);
      expect(none).toMatch(/kept\s+100\.0 %/);
      expect(await page.locator("tbody tr.chosen").innerText()).toMatch(/48,000\s+none/);
      await page.locator("tbody tr", { hasText: "economic" }).first().getByRole("button").click();
      expect(await numbers()).toBe(economic);
      expect(await page.getByRole("radio", { name: "economic" }).isChecked()).toBe(true);
      await page.getByRole("radio", { name: "200k" }).check();
      expect(await page.locator("tbody tr.chosen").innerText()).toMatch(/200,000\s+economic/);
    });
  });

  test("pointing at a call shows its numbers, on both charts at once", { tags: ["deep"] }, async () => {
    await open("page.html", {}, async (page) => {
      const coding = card(page, "coding.jsonl");
      const timeline = coding.locator("svg.timeline");
      await timeline.scrollIntoViewIfNeeded();
      expect(await coding.locator(".call").innerText()).toMatch(/^Last call, 120 of 120: /);
      await timeline.hover({ position: { x: 300, y: 60 } });
      expect(await coding.locator(".call").innerText()).toMatch(/^Call \d+ of 120: [\d,]+ tokens, /);
      expect(await coding.locator("svg .cursor[visibility=visible]").count()).toBe(2);
      await page.mouse.move(5, 5);
      expect(await coding.locator(".call").innerText()).toMatch(/^Last call/);
    });
  });

  test("is usable by keyboard alone", { tags: ["deep"] }, async () => {
    await open("page.html", {}, async (page) => {
      const timeline = card(page, "coding.jsonl").getByRole("slider");
      for (let presses = 0; presses < 60; presses++) {
        await page.keyboard.press("Tab");
        if (await timeline.evaluate((node) => node === node.ownerDocument.activeElement)) break;
      }
      expect(await timeline.getAttribute("aria-valuenow")).toBe("120");
      await page.keyboard.press("Home");
      await page.keyboard.press("ArrowRight");
      expect(await timeline.getAttribute("aria-valuenow")).toBe("2");
      expect(await timeline.getAttribute("aria-valuetext")).toMatch(/^Call 2 of 120: /);
      await page.keyboard.press("End");
      expect(await timeline.getAttribute("aria-valuenow")).toBe("120");
    });
  });

  test("sessions can be found and sorted", { tags: ["deep"] }, async () => {
    await open("page.html", {}, async (page) => {
      const shown = () => page.locator(".card:not([hidden]) h3").allInnerTexts();
      await page.getByRole("searchbox").fill("CODING");
      expect(await shown()).toEqual(["coding.jsonl"]);
      await page.getByRole("searchbox").fill("nothing of the kind");
      expect(await page.locator(".empty").isVisible()).toBe(true);
      await page.getByRole("searchbox").fill("");
      await page.getByRole("combobox").selectOption("calls");
      expect((await shown()).slice(0, 2)).toEqual(["coding.jsonl", "short.jsonl"]);
      await page.getByRole("combobox").selectOption("kept");
      expect((await shown())[0]).toBe("coding.jsonl");
      await page.getByRole("checkbox").check();
      expect(await shown()).toEqual(["coding.jsonl"]);
    });
  });

  test("names and content that look like markup are shown as text and never run", async () => {
    await open("page.html", {}, async (page) => {
      expect(await page.title()).toBe("Plimsoll replay");
      const hostile = page.locator(".card").nth(2);
      await hostile.scrollIntoViewIfNeeded();
      expect(await hostile.locator("h3").textContent()).toBe(hostileName);
      expect(await hostile.locator(".title").textContent()).toContain(attacks[0]);
      expect(await page.locator("img").count()).toBe(0);
      expect(await page.locator("script").count()).toBe(2);
    });
  });

  test.each([
    [320, "light"],
    [390, "light"],
    [390, "dark"],
    [1280, "light"],
    [1280, "dark"],
  ] as const)(
    "at %i pixels in %s everything has its room, and the colours follow",
    { tags: ["deep"] },
    async (width, colorScheme) => {
      await open("page.html", { colorScheme, viewport: { width, height: 844 } }, async (page) => {
        for (const choice of ["rfc", "none", "economic"]) {
          await page.getByRole("radio", { name: choice, exact: true }).check();
          expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
        }
        const wide = await page.evaluate(
          `[...document.querySelectorAll("td, .numbers dd, .kinds li, svg")].filter((node) => node.getBoundingClientRect().right > ${width}).length`,
        );
        expect(wide).toBe(0);
        expect(await roomOfSearchHint(page)).toBeGreaterThan(0);
        const gaps = await gapsInRows(page);
        expect(gaps.length).toBeGreaterThan(20);
        expect(Math.min(...gaps)).toBeGreaterThanOrEqual(6);
        const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor");
        const brightness = Math.max(...(String(ground).match(/\d+/g) ?? []).map(Number));
        expect(brightness > 128).toBe(colorScheme === "light");
      });
    },
  );

  /** Pixels that the search field has left beside its hint. */
  function roomOfSearchHint(page: Page): Promise<unknown> {
    return page.evaluate(`(() => {
      const field = document.querySelector("input[type=search]");
      const style = getComputedStyle(field);
      const context = document.createElement("canvas").getContext("2d");
      context.font = style.fontSize + " " + style.fontFamily;
      return field.clientWidth - 2 * parseFloat(style.paddingLeft) - context.measureText(field.placeholder).width;
    })()`);
  }

  /** Pixels between the numbers that stand beside each other in a row. */
  function gapsInRows(page: Page): Promise<number[]> {
    return page.locator("tr").evaluateAll((rows) =>
      rows.flatMap((row) => {
        const boxes = [...row.children].flatMap((cell) => {
          const range = row.ownerDocument.createRange();
          range.selectNodeContents(cell);
          const box = range.getBoundingClientRect();
          return box.width > 0 ? [{ left: box.left, right: box.right, top: box.top, bottom: box.bottom }] : [];
        });
        return boxes.flatMap((left) =>
          boxes
            .filter(({ left: x, top, bottom }) => x > left.left && top < left.bottom && bottom > left.top)
            .map((right) => right.left - left.right),
        );
      }),
    );
  }

  test("no policy to compare with is a page all the same", { tags: ["deep"] }, async () => {
    await open("alone.html", {}, async (page) => {
      expect(await page.locator("tbody tr").count()).toBe(1);
      expect(await page.locator(".card .call").innerText()).toMatch(/^Last call, 1 of 1: /);
      expect(await page.locator(".balance").count()).toBe(0);
    });
  });

  test.each(["page.html", "tiny.html", "long.html"])(
    "on %s no axis has a label twice",
    { tags: ["deep"], timeout: 120_000 },
    async (file) => {
      await open(file, {}, async (page) => {
        const axes = await page.locator("svg.plot").evaluateAll((charts) =>
          charts.flatMap((chart) => {
            const texts = [...chart.querySelectorAll("text:not([class])")];
            const labels = (anchor: string) =>
              texts.filter((text) => text.getAttribute("text-anchor") === anchor).map((text) => text.textContent);
            return [labels("end"), labels("middle")];
          }),
        );
        expect(axes.flat().length).toBeGreaterThan(5);
        for (const labels of axes) expect(new Set(labels).size).toBe(labels.length);
      });
    },
  );

  test("the name of the window stands on a ground of its own, over all lines", { tags: ["deep"] }, async () => {
    await open("page.html", {}, async (page) => {
      const timeline = card(page, "coding.jsonl").locator("svg.timeline");
      await timeline.scrollIntoViewIfNeeded();
      const [ground, text] = [timeline.locator(".ground"), timeline.locator("text.limit")];
      const [outer, inner] = [(await ground.boundingBox())!, (await text.boundingBox())!];
      expect(outer.x).toBeLessThan(inner.x);
      expect(outer.x + outer.width).toBeGreaterThan(inner.x + inner.width);
      // Only the label itself and the cursor come later.
      expect(await timeline.locator(".ground ~ *").count()).toBe(2);
    });
  });

  test("a session of thousands of messages is drawn by the pixel and stays quick", { tags: ["perf"] }, async () => {
    await open("long.html", {}, async (page) => {
      const long = card(page, "long.jsonl");
      expect(await long.locator(".call").innerText()).toContain(`of ${deepTurns.toLocaleString("en-US")}`);
      const path = await long.locator("svg.timeline path[fill]").first().getAttribute("d");
      expect(path?.split("H").length).toBeLessThan(1_300);
      const started = performance.now();
      for (const policy of ["none", "economic"]) await page.getByRole("radio", { name: policy }).check();
      for (let x = 50; x < 650; x += 30) await long.locator("svg.timeline").hover({ position: { x, y: 50 } });
      expect(performance.now() - started).toBeLessThan(10_000);
      const drawMs = await page.evaluate(`(() => {
        const radios = [...document.querySelectorAll("input[type=radio][name=policy]")];
        const least = [Infinity, Infinity];
        for (let turn = 0; turn < 10; turn++) {
          const started = performance.now();
          radios[turn % 2].dispatchEvent(new Event("change"));
          least[turn % 2] = Math.min(least[turn % 2], performance.now() - started);
        }
        return Math.max(...least);
      })()`);
      expect(drawMs).toBeLessThan(200);
    });
  });
});
