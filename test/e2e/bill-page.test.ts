/** The page of `bill --html` in a real browser: Chromium, at /usr/bin/chromium or where CHROMIUM says. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generateBilledSession } from "../generate/billed-sessions.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const hasBrowser = existsSync(executablePath);
/** Each would run if it were taken for markup or script. */
const hostile = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u2028";

describe.skipIf(!hasBrowser)("the page of a bill (skipped where no Chromium is installed)", { tags: ["deep"] }, () => {
  let sandbox: Sandbox;
  let browser: Browser;
  const long = generateBilledSession({ seed: 5, agent: "claude-code", calls: 5000 });
  const odd = generateBilledSession({ seed: 6, agent: "claude-code", calls: 60 });
  beforeAll(async () => {
    sandbox = createSandbox();
    const name = JSON.stringify(hostile).slice(1, -1);
    sandbox.write("runs/long.jsonl", long.text);
    sandbox.write(
      "runs/odd.jsonl",
      odd.text.replaceAll(/"cwd":"[^"]*"/g, `"cwd":"${name}"`).replaceAll('"Read"', `"${name}"`),
    );
    const { code, stderr } = await sandbox.call(["bill", "runs", "--no-index", "--html", "bill.html"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("wrote bill.html: 2 sessions") });
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--headless"] });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    sandbox.remove();
  });

  /** Opens the page, and fails on any error in it and anything that it loads. */
  async function open(width: number, look: (page: Page) => Promise<void>): Promise<void> {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    const trouble: string[] = [];
    page.on("pageerror", (error) => trouble.push(error.message));
    page.on("console", (message) => trouble.push(message.text()));
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) trouble.push(request.url());
    });
    await page.goto(`file://${join(sandbox.cwd, "bill.html")}`);
    await look(page);
    expect(trouble).toEqual([]);
    await page.close();
  }

  test.each([390, 1280])("fits a screen of %i pixels with 5,000 calls", async (width) => {
    await open(width, async (page) => {
      await page.locator(".card").first().scrollIntoViewIfNeeded();
      await page.waitForSelector(".card svg path");
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
      expect(await page.locator(".card").count()).toBe(2);
      expect(await page.locator(".spend rect").count()).toBeGreaterThan(3);
      const marks = await page.locator(".card").first().locator("path.loss").count();
      expect(marks).toBe(long.planted.length);
    });
  });

  test("shows hostile names as text", async () => {
    await open(1280, async (page) => {
      expect(await page.title()).toBe("Plimsoll bill");
      expect(await page.locator("img").count()).toBe(0);
      expect(await page.locator("main").innerText()).toContain("<script>document.title='taken'</script>");
    });
  });

  test("names the cause of a loss under the pointer, and finds sessions", async () => {
    await open(1280, async (page) => {
      await page.getByPlaceholder("project or session").fill("taken");
      expect(await page.locator(".card:visible").count()).toBe(1);
      const card = page.locator(".card:visible");
      await card.scrollIntoViewIfNeeded();
      const box = await card.locator("path.loss").first().boundingBox();
      if (box === null) throw new Error("the loss is not drawn");
      await page.mouse.move(box.x + box.width / 2, box.y + 60);
      await expect.poll(() => card.locator(".call").innerText()).toContain(odd.planted[0]?.cause);
    });
  });
});
