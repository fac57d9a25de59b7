import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fetchText, maxFetchBytes } from "./fetch-text.ts";

const line = `${"é".repeat(49)}\n`;
const pages: Record<string, RequestListener> = {
  "/page": (_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end('<main><h1>Ü</h1><p><a href="next">n</a></p></main><footer>f</footer>');
  },
  "/latin": (_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(Buffer.from('<meta charset="iso-8859-1"><p>gr\u00fcn</p>', "latin1"));
  },
  "/notes.md": (_, response) => {
    response.setHeader("content-type", "text/markdown");
    response.end("\ufeff# A\r\n\r\nB <b>c</b>\r\n");
  },
  "/bare": (_, response) => response.end("<!doctype html><p>x"),
  "/picture": (_, response) => {
    response.setHeader("content-type", "image/png");
    response.end("x");
  },
  "/binary": (_, response) => response.end(Buffer.from([1, 0, 2])),
  "/invalid": (_, response) => {
    response.setHeader("content-type", "text/plain");
    response.end(Buffer.from("ab\xff", "latin1"));
  },
  "/odd-charset": (_, response) => {
    response.setHeader("content-type", "text/plain; charset=klingon");
    response.end("a");
  },
  "/empty": (_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<script>app()</script>");
  },
  "/huge": (_, response) => {
    response.setHeader("content-type", "text/plain; charset=utf-8");
    const more = () => {
      while (!response.destroyed && response.write(line.repeat(500)));
    };
    response.on("drain", more);
    more();
  },
  "/long-line": (_, response) => response.end(`a${"é".repeat(maxFetchBytes)}`),
  "/silent": () => {},
  "/stalled": (_, response) => response.write("a"),
  "/broken": (_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("a", () => response.destroy());
  },
  "/hop": (_, response) => response.writeHead(302, { location: "/page" }).end(),
  "/loop": (_, response) => response.writeHead(301, { location: "/loop" }).end(),
  "/file": (_, response) => response.writeHead(302, { location: "file:///etc/hostname" }).end(),
  "/nowhere": (_, response) => response.writeHead(302, { location: "http://[" }).end(),
};

let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    const page = pages[request.url ?? ""];
    if (page === undefined) response.writeHead(404).end("gone");
    else page(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const markdown = { format: "markdown" } as const;
const whole = (text: string) => ({ text, truncated: false, warning: undefined });

test("a page is converted as the format asks, its links from where it was found", async () => {
  const url = `${origin}/hop`;
  const link = `[n](${origin}/next)`;
  expect(await fetchText(url, { ...markdown, selector: "main" })).toEqual(whole(`# Ü\n\n${link}\n`));
  expect(await fetchText(url, { format: "text" })).toEqual(whole("Ü\n\nn\n\nf\n"));
  expect(await fetchText(url, { format: "raw", selector: "main" })).toMatchObject({
    text: expect.stringContaining("<main><h1>Ü</h1>"),
  });
  expect(await fetchText(url, { ...markdown, selector: "#x" })).toMatchObject({
    text: `# Ü\n\n${link}\n\nf\n`,
    warning: expect.stringContaining("#x"),
  });
});

test("text stays as it is but for its line ends and byte order mark", async () => {
  expect(await fetchText(`${origin}/notes.md`, markdown)).toEqual(whole("# A\n\nB <b>c</b>\n"));
});

test("a page says its charset itself, or is told by how it starts", async () => {
  expect(await fetchText(`${origin}/latin`, markdown)).toEqual(whole("grün\n"));
  expect(await fetchText(`${origin}/bare`, markdown)).toEqual(whole("x\n"));
});

test.each([
  ["/gone", "HTTP 404"],
  ["/picture", "is image/png, which is no text"],
  ["/binary", "is binary data, no text"],
  ["/invalid", "is no valid UTF-8"],
  ["/odd-charset", "is no valid text in klingon"],
  ["/empty", "the page holds no text"],
  ["/broken", "the connection broke"],
  ["/loop", "more than 5 redirects"],
  ["/nowhere", 'redirected to "http://[", which is no address'],
  ["/file", "redirected to file:///etc/hostname: only http and https are fetched, not file:"],
])("%s is refused: %s", async (path, reason) => {
  expect(await fetchText(`${origin}${path}`, markdown)).toEqual({ reason });
});

test.each([
  ["file:///etc/hostname", "only http and https are fetched, not file:"],
  ["javascript:1", "only http and https are fetched, not javascript:"],
  ["example.com/x", "is no address: write it whole, with https://"],
  ["https://me:secret@a.example/", "has a user name or password in it: fetch public pages only"],
])("%s is not fetched: %s", async (url, reason) => {
  expect(await fetchText(url, markdown)).toMatchObject({ reason: expect.stringContaining(reason) });
});

test("a server that is not there refuses the connection", async () => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  expect(await fetchText(`http://127.0.0.1:${port}/`, markdown)).toEqual({
    reason: "the connection is refused",
  });
});

test("an answer that does not come, or does not end, is given up", async () => {
  for (const path of ["/silent", "/stalled"]) {
    const start = performance.now();
    const fetched = await fetchText(`${origin}${path}`, { ...markdown, timeoutMs: 300 });
    expect(fetched).toEqual({ reason: "no answer within 0.3 s" });
    expect(performance.now() - start).toBeLessThan(3000);
  }
});

test("an endless answer is cut at a line within 1 MiB", async () => {
  const fetched = await fetchText(`${origin}/huge`, markdown);
  const lines = Math.floor(maxFetchBytes / Buffer.byteLength(line));
  expect(fetched).toEqual({ text: line.repeat(lines), truncated: true, warning: undefined });
});

test("an endless line is cut at a character", async () => {
  const fetched = await fetchText(`${origin}/long-line`, markdown);
  expect(fetched).toEqual({
    text: `a${"é".repeat(maxFetchBytes / 2 - 1)}`,
    truncated: true,
    warning: undefined,
  });
});
