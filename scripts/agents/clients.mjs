/** Where the real agents are below a folder, and how each is pointed at a model on loopback. A folder has one
 *  installation for each agent: `npm install --prefix DIR/codex @openai/codex`. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The packages, and the program in each. Their versions are printed. */
const packages = {
  claude: ["@anthropic-ai/claude-code-linux-x64", "claude"],
  codex: ["@openai/codex", "bin/codex.js"],
  opencode: ["opencode-ai", "bin/opencode"],
  gemini: ["@google/gemini-cli", "bundle/gemini.js"],
  pi: ["@mariozechner/pi-coding-agent", "dist/cli.js"],
  copilot: ["@github/copilot", "npm-loader.js"],
  cline: ["cline", "bin/cline"],
  qwen: ["@qwen-code/qwen-code", "cli.js"],
};

export const clientNames = Object.keys(packages);

/** Returns why a client cannot run, or its version. */
export function findClient(folder, name) {
  const [packageName] = packages[name];
  const file = join(folder, name, "node_modules", packageName, "package.json");
  if (!existsSync(file)) return { missing: `npm install --prefix ${join(folder, name)} ${packageName}` };
  return { version: JSON.parse(readFileSync(file, "utf8")).version };
}

/** Creates a HOME for one client and returns its environment: only this client and Node are on PATH. */
export function prepareClient(folder, name, { home, url }) {
  const bin = join(home, "bin");
  mkdirSync(bin, { recursive: true });
  const program = programOf(folder, name);
  symlinkSync(program, join(bin, name));
  // Some need a newer Node than Plimsoll does.
  const node = join(folder, "node24/node_modules/node/bin");
  const path = [bin, ...(existsSync(node) ? [node] : [dirname(process.execPath)]), "/usr/bin", "/bin"];
  const env = { PATH: path.join(":"), HOME: home, ...settings[name].env(url) };
  for (const [file, text] of Object.entries(settings[name].files?.(url) ?? {})) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), text);
  }
  return env;
}

function programOf(folder, name) {
  const modules = join(folder, name, "node_modules");
  const own = join(modules, ".bin", name);
  const [packageName, program] = packages[name];
  return existsSync(own) ? own : join(modules, packageName, program);
}

const settings = {
  claude: {
    model: "claude-sonnet-4-5",
    env: (url) => ({
      ANTHROPIC_API_KEY: "none",
      ANTHROPIC_BASE_URL: url,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_ERROR_REPORTING: "1",
      DISABLE_TELEMETRY: "1",
    }),
  },
  codex: {
    model: "gpt-5",
    env: () => ({ SCRIPTED_KEY: "none" }),
    files: (url) => ({
      ".codex/config.toml": [
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        `base_url = "${url}/v1"`,
        'env_key = "SCRIPTED_KEY"',
        'wire_api = "responses"',
        "[analytics]",
        "enabled = false",
        "",
      ].join("\n"),
    }),
  },
  opencode: {
    model: "scripted/claude-sonnet-4-5",
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
    }),
    files: (url) => {
      const options = { baseURL: `${url}/v1`, apiKey: "none" };
      const scripted = { npm: "@ai-sdk/anthropic", options, models: { "claude-sonnet-4-5": {} } };
      return { ".config/opencode/opencode.json": JSON.stringify({ provider: { scripted } }) };
    },
  },
  gemini: {
    model: "gemini-2.5-pro",
    env: (url) => ({ GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url, GEMINI_TELEMETRY_ENABLED: "false" }),
    files: () => ({
      ".gemini/settings.json": JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }),
    }),
  },
  copilot: {
    model: "gpt-5.4",
    env: (url) => ({
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: "none",
      COPILOT_MODEL: "gpt-5.4",
      COPILOT_OFFLINE: "true",
    }),
  },
  cline: {
    model: "gpt-5.4",
    env: () => ({ CLINE_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" }),
    files: (url) => {
      const settings = { provider: "openai-compatible", apiKey: "none", model: "gpt-5.4", baseUrl: `${url}/v1` };
      const providers = { "openai-compatible": { settings, updatedAt: "2026-11-01T00:00:00Z", tokenSource: "manual" } };
      const file = { version: 1, lastUsedProvider: "openai-compatible", modes: {}, providers };
      return { ".cline/data/settings/providers.json": JSON.stringify(file) };
    },
  },
  qwen: {
    model: "qwen3-coder",
    env: (url) => ({ OPENAI_API_KEY: "none", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "qwen3-coder" }),
  },
  pi: {
    model: "scripted/claude-sonnet-4-5",
    env: () => ({ PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" }),
    files: (url) => {
      const models = [{ id: "claude-sonnet-4-5", name: "scripted", contextWindow: 200_000, maxTokens: 8_000 }];
      const scripted = { baseUrl: url, api: "anthropic-messages", apiKey: "none", models };
      return { ".pi/agent/models.json": JSON.stringify({ providers: { scripted } }) };
    },
  },
};

/** The model that a client is run with. */
export function modelOf(name) {
  return settings[name].model;
}
