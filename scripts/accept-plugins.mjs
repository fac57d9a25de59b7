/** Runs the plugins in the real clients against a scripted model and checks what reaches it:
 *  `npm run accept:plugins -- DIR [CLIENT[:PART]…]`. DIR has an installation of each client; scripts/agents/clients.mjs
 *  says where. Uses loopback only. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Each client has `acceptPlugin({ folder, root, plimsoll, check, part })`. Without `part` it runs all of its checks. */
const clients = {
  "claude-code": () => import("./agents/plugin-claude-code.mjs"),
  opencode: async () => (await import("./agents/plugin-hooked.mjs")).opencode,
  pi: async () => (await import("./agents/plugin-hooked.mjs")).pi,
  "gemini-cli": async () => (await import("./agents/plugin-hooked.mjs")).gemini,
};

const [directory, ...chosen] = process.argv.slice(2);
const unknown = chosen.find((name) => !Object.hasOwn(clients, name.split(":")[0]));
const isHelp = process.argv.slice(2).some((word) => word === "--help" || word === "-h");
if (isHelp || directory === undefined || unknown !== undefined) {
  const usage = `usage: npm run accept:plugins -- DIR [CLIENT[:PART]…]

Runs the plugins in the real clients against a scripted model on loopback. DIR has an installation of each client:
npm install --prefix DIR/claude @anthropic-ai/claude-code-linux-x64 (also opencode, pi, gemini).
clients: ${Object.keys(clients).join(", ")}
A part is one group of checks, such as claude-code:trim, claude-code:time or opencode:trimming.`;
  console[isHelp ? "log" : "error"](usage);
  process.exit(isHelp ? 0 : 2);
}
const failures = [];
let checks = 0;
const root = mkdtempSync(join(tmpdir(), "plimsoll-accept-"));
const plimsoll = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
try {
  for (const choice of chosen.length > 0 ? chosen : Object.keys(clients)) {
    const [name, part] = choice.split(":");
    const { acceptPlugin } = await clients[name]();
    const before = checks;
    await acceptPlugin({ folder: resolve(directory), root, plimsoll, check, part });
    if (checks === before) check(false, `${choice}: nothing was checked. Is ${part} a part of ${name}?`);
  }
} finally {
  // A client may still write its last lines.
  rmSync(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
}
console.log(failures.length === 0 ? "\nAll checks passed." : `\n${failures.length} failed:\n${failures.join("\n")}`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Prints one line. `facts` are printed if the check failed. */
function check(isTrue, what, facts) {
  checks++;
  console.log(`${isTrue ? "✓" : "✗"} ${what}`);
  if (isTrue) return;
  failures.push(what);
  if (facts !== undefined) console.log(JSON.stringify(facts, null, 2).slice(0, 3_000));
}
