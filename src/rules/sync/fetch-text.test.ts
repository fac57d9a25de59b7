import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fetchText } from "./fetch-text.ts";

const maxFetchBytes = 1024 * 1024;

const bomb = brotliCompressSync(Buffer.alloc(30_000_000, "a\n"), {
  params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
});
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
  "/gzip": (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" });
    response.end(gzipSync("packed"));
  },
  "/bomb": (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "br" });
    response.end(bomb);
  },
  "/not-gzip": (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" });
    response.end("plain");
  },
  "/not-br": (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "br" });
    response.end("plain");
  },
  "/odd-encoding": (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "rot13" });
    response.end("a");
  },
  "/headers": (request, response) => response.end(JSON.stringify(request.headers)),
  "/inside": (_, response) => response.writeHead(302, { location: `http://10.0.0.1:${port()}/page` }).end(),
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

const markdown = { format: "markdown", allowPrivate: true } as const;
const whole = (text: string) => ({ text, truncated: false, warning: undefined });

test("converts a page as the format requires, with links relative to its final address", async () => {
  const url = `${origin}/hop`;
  const link = `[n](${origin}/next)`;
  expect(await fetchText(url, { ...markdown, selector: "main" })).toEqual(whole(`# Ü\n\n${link}\n`));
  expect(await fetchText(url, { ...markdown, format: "text" })).toEqual(whole("Ü\n\nn\n\nf\n"));
  expect(await fetchText(url, { ...markdown, format: "raw", selector: "main" })).toMatchObject({
    text: expect.stringContaining("<main><h1>Ü</h1>"),
  });
  expect(await fetchText(url, { ...markdown, selector: "#x" })).toMatchObject({
    text: `# Ü\n\n${link}\n\nf\n`,
    warning: expect.stringContaining("#x"),
  });
});

test("keeps text except for its line ends and byte order mark", async () => {
  expect(await fetchText(`${origin}/notes.md`, markdown)).toEqual(whole("# A\n\nB <b>c</b>\n"));
});

test("reads the charset from the page, and recognises HTML by its start", async () => {
  expect(await fetchText(`${origin}/latin`, markdown)).toEqual(whole("grün\n"));
  expect(await fetchText(`${origin}/bare`, markdown)).toEqual(whole("x\n"));
});

test.each([
  ["/gone", "HTTP 404"],
  ["/picture", "is image/png, which is not text"],
  ["/binary", "is binary data, not text"],
  ["/invalid", "is not valid UTF-8"],
  ["/odd-charset", "is not valid text in klingon"],
  ["/odd-encoding", "is encoded as rot13, which is not supported"],
  ["/not-gzip", "does not match its stated encoding"],
  ["/not-br", "does not match its stated encoding"],
  ["/empty", "the page has no text"],
  ["/broken", "the connection was lost"],
  ["/loop", "more than 5 redirects"],
  ["/nowhere", 'redirected to "http://[", which is not an address'],
  ["/file", "redirected to file:///etc/hostname: only http and https are fetched, not file:"],
])("refuses %s: %s", async (path, reason) => {
  expect(await fetchText(`${origin}${path}`, markdown)).toEqual({ reason });
});

test.each([
  ["file:///etc/hostname", "only http and https are fetched, not file:"],
  ["javascript:1", "only http and https are fetched, not javascript:"],
  ["example.com/x", "is not an address: write it in full, with https://"],
  ["https://me:secret@a.example/", "contains a user name or password: only public pages are fetched"],
])("does not fetch %s: %s", async (url, reason) => {
  expect(await fetchText(url, markdown)).toMatchObject({ reason: expect.stringContaining(reason) });
});

const port = () => (server.address() as AddressInfo).port;
const strict = { format: "markdown" } as const;

test.each([
  ["http://127.0.0.1/", "127.0.0.1 is not a public address"],
  ["http://0x7f.1/", "127.0.0.1 is not a public address"],
  ["http://2130706433/", "127.0.0.1 is not a public address"],
  ["http://[::1]/", "::1 is not a public address"],
  ["http://[::ffff:169.254.169.254]/", "::ffff:a9fe:a9fe is not a public address"],
  ["http://169.254.169.254/latest/meta-data/", "169.254.169.254 is not a public address"],
  ["https://10.0.0.1/", "10.0.0.1 is not a public address"],
  ["http://localhost/", "localhost leads to"],
])("does not reach %s without permission", async (address, reason) => {
  const url = new URL(address);
  url.port = String(port());
  expect(await fetchText(url.href, strict)).toEqual({ reason: expect.stringContaining(reason) });
});

test("refuses a public name that leads inside, at first and after a redirect", async () => {
  const inside = { lookupHost: async () => [{ address: "127.0.0.1", family: 4 }] };
  const address = `http://a.example:${port()}/page`;
  expect(await fetchText(address, { ...strict, ...inside })).toEqual({
    reason: "a.example leads to 127.0.0.1, which is not a public address. Use --allow-private to fetch from it",
  });
  // The server acts as a public one here. The address that it redirects to is checked again.
  let asked = 0;
  const fetched = await fetchText(`${origin}/inside`, {
    ...strict,
    get allowPrivate() {
      return asked++ === 0;
    },
  });
  expect(fetched).toEqual({
    reason: expect.stringMatching(/^redirected to http:\/\/10\.0\.0\.1:\d+\/page: 10\.0\.0\.1 is not a public/),
  });
});

test("connects to the address that was checked, with the name of the host", async () => {
  const names: string[] = [];
  const fetched = await fetchText(`http://a.example:${port()}/headers`, {
    ...markdown,
    lookupHost: async (name) => {
      names.push(name);
      return [{ address: "127.0.0.1", family: 4 }];
    },
  });
  expect(names).toEqual(["a.example"]);
  expect(fetched).toMatchObject({ text: expect.stringContaining(`"host":"a.example:${port()}"`) });
  expect(fetched).not.toMatchObject({ text: expect.stringMatching(/cookie|authorization|referer/) });
});

test("unpacks a packed answer up to the limit", async () => {
  expect(await fetchText(`${origin}/gzip`, markdown)).toEqual(whole("packed"));
  const fetched = await fetchText(`${origin}/bomb`, markdown);
  expect(fetched).toEqual({ text: "a\n".repeat(maxFetchBytes / 2), truncated: true, warning: undefined });
});

test("reports a refused connection", async () => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  expect(await fetchText(`http://127.0.0.1:${port}/`, markdown)).toEqual({
    reason: "the connection was refused",
  });
});

test("gives up an answer that does not come or does not end", async () => {
  for (const path of ["/silent", "/stalled"]) {
    const start = performance.now();
    const fetched = await fetchText(`${origin}${path}`, { ...markdown, timeoutMs: 300 });
    expect(fetched).toEqual({ reason: "no answer within 0.3 s" });
    expect(performance.now() - start).toBeLessThan(3000);
  }
});

test("cuts an endless answer at a line within 1 MiB", async () => {
  const fetched = await fetchText(`${origin}/huge`, markdown);
  const lines = Math.floor(maxFetchBytes / Buffer.byteLength(line));
  expect(fetched).toEqual({ text: line.repeat(lines), truncated: true, warning: undefined });
});

test("cuts an endless line at a character", async () => {
  const fetched = await fetchText(`${origin}/long-line`, markdown);
  expect(fetched).toEqual({
    text: `a${"é".repeat(maxFetchBytes / 2 - 1)}`,
    truncated: true,
    warning: undefined,
  });
});
