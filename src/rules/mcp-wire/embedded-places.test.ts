import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseTomlKey } from "../../core/text/index.ts";
import { type Adapter, scopes } from "../adapters/adapter.ts";
import { readEmbeddedContent } from "../content/load-content.ts";
import { installServers, uninstallServers } from "./install-servers.ts";

const wired = readEmbeddedContent<Adapter>().adapters.filter(({ mcpConfigs }) => mcpConfigs.length > 0);

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-places-")));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("the tools that the product names are among them", () => {
  const ids = wired.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(["claude-code", "codex-cli", "cursor", "gemini-cli", "github-copilot"]));
});

test.each(wired.map((adapter) => [adapter.id, adapter] as const))(
  "%s: every place is complete, and the server comes and goes there",
  async (_id, adapter) => {
    for (const { path, format, key } of adapter.mcpConfigs) {
      expect(path).toMatch(/^(?:~\/|[^~/])/);
      expect(["json", "jsonc", "toml"]).toContain(format);
      expect(parseTomlKey(key!)).toHaveLength(1);
    }
    for (const scope of scopes) {
      const places = { scope, root: join(base, scope), home: join(base, scope) };
      const env = { HOME: base, PATH: "", XDG_STATE_HOME: join(base, "state") };
      const own = adapter.mcpConfigs.filter(({ path }) => path!.startsWith("~/") === (scope === "global"));
      if (own.length === 0) continue;
      mkdirSync(places.root);
      const options = { adapters: [adapter], places, env, dryRun: false, tools: [adapter.id] };
      const [added] = await installServers(options);
      expect(added!.change?.written).toBe(true);
      expect(existsSync(join(places.root, own[0]!.path!.replace("~/", "")))).toBe(true);
      const [removed] = await uninstallServers(options);
      expect(removed!.change).toMatchObject({ after: undefined, written: true });
      expect(readdirSync(places.root)).toEqual([]);
    }
  },
);
