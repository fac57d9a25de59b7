/** Which directory the tools read, as the client offers its roots. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type ConnectOptions,
  connectLines,
  officialClients,
  plimsoll,
  readToken,
  type TestClient,
  type ToolResult,
} from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createSandbox();
  for (const name of ["one", "two", "two/inner"]) {
    mkdirSync(join(sandbox.cwd, name), { recursive: true });
    writeFileSync(join(sandbox.cwd, name, "name.txt"), `${name}\n`);
  }
  sandbox.write("name.txt", "cwd\n");
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  sandbox.remove();
});

const address = (path: string): string => pathToFileURL(join(sandbox.cwd, path)).href;
const nameRead = async (client: Pick<TestClient, "call">): Promise<string> => {
  const { content } = await client.call("read_file", { path: "name.txt" });
  const { data, error } = JSON.parse(content[0]!.text) as {
    data?: { lines: string[] };
    error?: { message: string };
  };
  return data === undefined ? `error: ${error!.message}` : data.lines[0]!;
};

async function open(
  connect: (typeof officialClients)[number][1],
  place: Pick<Sandbox, "cwd">,
  { args = [], ...options }: ConnectOptions & { readonly args?: readonly string[] } = {},
): Promise<TestClient> {
  const client = await connect({ ...sandbox, ...place }, ["mcp", "--format", "json", ...args], options);
  opened.push(client.close);
  return client;
}

/** A server answers each of them alike: the full numbers show it. */
const someClients = process.env.PLIMSOLL_DEEP === "1" ? officialClients : officialClients.slice(0, 1);

describe.each(someClients)("%s", (_name, connect) => {
  test("reads the first root that holds the working directory, else the first one", async () => {
    const roots = (...paths: string[]) => ({ roots: () => paths.map(address) });
    const inner = { cwd: join(sandbox.cwd, "two/inner") };
    expect(await nameRead(await open(connect, inner, roots("one", "two")))).toBe("two");
    expect(await nameRead(await open(connect, sandbox, roots("one", "two")))).toBe("one");
    expect(await nameRead(await open(connect, sandbox))).toBe("cwd");
  });

  test("reads the working directory if there is no root, and no root that is not there", {
    tags: ["deep"],
  }, async () => {
    const roots = (...paths: string[]) => ({ roots: () => paths.map(address) });
    const inner = { cwd: join(sandbox.cwd, "two/inner") };
    expect(await nameRead(await open(connect, inner, roots("two/inner", "two")))).toBe("two/inner");
    expect(await nameRead(await open(connect, sandbox, roots()))).toBe("cwd");
    expect(await nameRead(await open(connect, sandbox, roots("nothing/there", "two")))).toBe("two");
  });

  test("reads what --root names, whatever the client offers", async () => {
    const client = await open(connect, sandbox, { roots: () => [address("two")], args: ["--root", "one"] });
    expect(await nameRead(client)).toBe("one");
  });

  test("does not read the home directory or the whole file system unless told to", { tags: ["deep"] }, async () => {
    writeFileSync(join(sandbox.home, "name.txt"), "home\n");
    const [home, all] = [{ cwd: sandbox.home }, { cwd: "/" }];
    const inHome = await open(connect, home);
    expect(await nameRead(inHome)).toContain("error: The server was started in the home directory");
    const { content, isError } = await inHome.call("budget_status", {});
    expect(isError).toBe(true);
    expect(content[0]!.text).toContain("plimsoll mcp --root DIR");
    expect((await inHome.tools()).length).toBe(10);
    expect(await nameRead(await open(connect, all))).toContain("error: The server was started in the whole file");
    const offered = { roots: () => [pathToFileURL(sandbox.home).href] };
    expect(await nameRead(await open(connect, sandbox, offered))).toContain("error: The client offers the home");
    expect(await nameRead(await open(connect, home, { roots: () => [address("two")] }))).toBe("two");
    expect(await nameRead(await open(connect, home, { args: ["--root", "."] }))).toBe("home");
  });

  test("over HTTP each client has its own roots", { tags: ["deep"] }, async () => {
    const server = connectLines(plimsoll("mcp", "--format", "json", "--http", "0"), sandbox);
    opened.push(() => server.child.kill("SIGKILL"));
    await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
    const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
    const token = readToken(sandbox);
    const clients = await Promise.all(
      ["one", "two", undefined].map((path) =>
        open(connect, sandbox, {
          url,
          token,
          ...(path === undefined ? {} : { roots: () => [address(path)] }),
        }),
      ),
    );
    for (let round = 0; round < 2; round += 1)
      expect(await Promise.all(clients.map(nameRead))).toEqual(["one", "two", "cwd"]);
  });
});

test.each(officialClients.slice(0, 2))(
  "%s can change its roots, over stdio and HTTP",
  { tags: ["deep"] },
  async (_name, connect) => {
    const server = connectLines(plimsoll("mcp", "--format", "json", "--http", "0"), sandbox);
    opened.push(() => server.child.kill("SIGKILL"));
    await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
    const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
    for (const options of [{}, { url, token: readToken(sandbox) }]) {
      let path = "one";
      const client = await open(connect, sandbox, { ...options, roots: () => [address(path)] });
      expect(await nameRead(client)).toBe("one");
      path = "two";
      expect(await nameRead(client)).toBe("one");
      await client.rootsChanged();
      await expect.poll(() => nameRead(client)).toBe("two");
    }
  },
);

test("a client that offers roots but does not send them is served without", { tags: ["deep"] }, async () => {
  const client = connectLines(plimsoll("mcp", "--format", "json"), sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  const clientInfo = { name: "silent", version: "1" };
  await client.request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: { roots: {} },
    clientInfo,
  });
  client.notify("notifications/initialized");
  const answer = (await client.call("read_file", { path: "name.txt" })) as ToolResult;
  expect(answer.content[0]!.text).toContain("cwd");
  expect(client.stderr()).toContain("the client offers roots but did not send them");
});
