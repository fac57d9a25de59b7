/** Compares what AI tools load in a project with what they loaded at another commit, and runs `inject --check`. This is the work of
 *  action.yml, and it runs anywhere: `node scripts/compare-tokens.mjs [BASE]`. In a GitHub workflow the report goes into the job's
 *  summary, and into a comment where the token may write one. Exits with 1 if the check fails. */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, lstatSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const { env } = process;
const ownMain = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
/** A comment with this line is ours, and the next run replaces it. */
const marker = "<!-- plimsoll: tokens of a pull request -->";
const maxFiles = 30;

const event = env.GITHUB_EVENT_PATH === undefined ? {} : JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8"));
const named = process.argv[2] ?? (env.COMPARE_BASE || event.pull_request?.base?.sha);
if (named === undefined || named.startsWith("--")) {
  console.error(
    "usage: node scripts/compare-tokens.mjs BASE\nBASE is the commit to compare with, such as origin/main.",
  );
  process.exit(2);
}
const base = findBase(named);
const check = runPlimsoll(["inject", "--check"], process.cwd());
const before = auditCommit(base);
const after = audit(process.cwd());
const report = renderReport({ before, after, check, base });
console.log(report);
if (env.GITHUB_STEP_SUMMARY) appendFileSync(env.GITHUB_STEP_SUMMARY, `${report}\n`);
await writeComment(`${marker}\n${report}`);
process.exitCode = check.status === 0 ? 0 : 1;

/** Returns the commit where this branch began. A runner has a shallow clone, so the commit may have to be fetched. */
function findBase(name) {
  const resolve = () => git(["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  if (resolve().status !== 0 && /^[0-9a-f]{40}$/.test(name)) git(["fetch", "--quiet", "--depth=1", "origin", name]);
  const { status, stdout } = resolve();
  if (status !== 0) {
    console.error(`compare-tokens: there is no commit ${JSON.stringify(name)} here. Fetch it, or name another one.`);
    process.exit(2);
  }
  const commit = stdout.trim();
  const shared = git(["merge-base", commit, "HEAD"]);
  return shared.status === 0 ? shared.stdout.trim() : commit;
}

function auditCommit(commit) {
  const folder = join(realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-compare-"))), "base");
  try {
    const added = git(["worktree", "add", "--quiet", "--detach", "--force", folder, commit]);
    if (added.status !== 0) throw new Error(`git worktree add failed: ${added.stderr}`);
    const root = realpathSync(git(["rev-parse", "--show-toplevel"]).stdout.replace(/\n$/, ""));
    const project = join(folder, relative(root, realpathSync(process.cwd())));
    return existsSync(project) ? audit(project) : { tools: new Map(), servers: new Set() };
  } finally {
    git(["worktree", "remove", "--force", folder]);
    rmSync(join(folder, ".."), { recursive: true, force: true });
    git(["worktree", "prune"]);
  }
}

/** The files of the project that each tool loads in every session, and the project's MCP servers. */
function audit(folder) {
  const { status, stdout, stderr } = runPlimsoll(["audit", "--json"], folder);
  if (status !== 0) throw new Error(`plimsoll audit failed: ${stderr}`);
  const tools = JSON.parse(stdout).tools.map(({ id, files }) => {
    const own = files.filter(({ path }) => !path.startsWith("~") && !path.startsWith("/"));
    const counts = own.map(({ path, via, tokens, alwaysTokens = tokens }) => ({
      path,
      kind: via.startsWith("skill") ? "skills" : "rules",
      tokens: via.includes("on demand") ? 0 : alwaysTokens,
    }));
    return [id, counts];
  });
  return { tools: new Map(tools), servers: readServers(folder) };
}

/** The names of MCP servers in `.mcp.json`. Their definitions are not counted: that would start programs of the pull request. */
function readServers(folder) {
  const file = join(folder, ".mcp.json");
  try {
    // A pull request may have a link or a pipe there.
    const { size } = lstatSync(file);
    if (!lstatSync(file).isFile() || size > 1_000_000) return new Set();
    return new Set(Object.keys(JSON.parse(readFileSync(file, "utf8")).mcpServers ?? {}));
  } catch {
    return new Set();
  }
}

function renderReport({ before, after, check, base }) {
  // Tools that load the same share a row.
  const rows = new Map();
  for (const id of new Set([...before.tools.keys(), ...after.tools.keys()])) {
    const [old, now] = [before.tools.get(id) ?? [], after.tools.get(id) ?? []];
    const change = (kind) => formatChange(sum(now, kind) - sum(old, kind));
    const cells = [change("rules"), change("skills"), formatNumber(sum(now)), formatChange(sum(now) - sum(old))];
    const key = cells.join(" ");
    rows.set(key, { ids: [...(rows.get(key)?.ids ?? []), id], cells });
  }
  const tools = [...rows.values()].map(({ ids, cells }) => [ids.map(code).join(", "), ...cells]);
  const servers = [
    ...[...after.servers].filter((name) => !before.servers.has(name)).map((name) => `added ${code(name)}`),
    ...[...before.servers].filter((name) => !after.servers.has(name)).map((name) => `removed ${code(name)}`),
  ];
  return [
    "### Tokens that AI tools load in every session",
    "",
    `Compared with ${base.slice(0, 12)}.`,
    "",
    ...table(["tool", "rules", "skills", "now", "change"], tools),
    ...renderFiles(before, after),
    ...(servers.length === 0
      ? []
      : ["", `MCP servers: ${servers.join(", ")}. Their definitions cost tokens too, which are not counted here.`]),
    "",
    check.status === 0 ? "`plimsoll inject --check` passes." : "**`plimsoll inject --check` fails:**",
    ...(check.status === 0 ? [] : ["", `<pre>${escapeText(`${check.stderr}${check.stdout}`.trimEnd())}</pre>`]),
  ].join("\n");
}

/** The files whose tokens changed. Each once, however many tools load it. */
function renderFiles(before, after) {
  const [old, now] = [before, after].map(
    ({ tools }) => new Map([...tools.values()].flat().map((file) => [file.path, file])),
  );
  const rows = [...new Set([...old.keys(), ...now.keys()])]
    .map((path) => [path, old.get(path)?.tokens ?? 0, now.get(path)?.tokens ?? 0])
    .filter(([, was, is]) => was !== is)
    .sort(([, a, b], [, c, d]) => Math.abs(d - c) - Math.abs(b - a));
  if (rows.length === 0) return [];
  const cells = rows
    .slice(0, maxFiles)
    .map(([path, was, is]) => [code(path), formatNumber(is), formatChange(is - was)]);
  const more = rows.length > maxFiles ? ["", `${rows.length - maxFiles} more files changed.`] : [];
  return ["", ...table(["file", "now", "change"], cells), ...more];
}

function sum(files, kind) {
  return files.filter((file) => kind === undefined || file.kind === kind).reduce((all, { tokens }) => all + tokens, 0);
}

function table(headings, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(headings), line(headings.map((_, index) => (index === 0 ? "---" : "--:"))), ...rows.map(line)];
}

function formatNumber(value) {
  return value.toLocaleString("en-US");
}

function formatChange(value) {
  if (value === 0) return "0";
  return value > 0 ? `+${formatNumber(value)}` : `−${formatNumber(-value)}`;
}

/** In `code`, GitHub makes no links and notifies nobody. */
function code(text) {
  return `<code>${escapeText(text).replaceAll("\n", " ")}</code>`;
}

/** Every sign that Markdown, HTML or a table could read is written as a number. Signs that turn the direction of text, and others
 *  that nobody sees, are written out. */
function escapeText(text) {
  return text
    .replace(/[^\P{C}\n]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`)
    .replace(/[^\p{L}\p{N} \n./_-]/gu, (sign) => `&#${sign.codePointAt(0)};`);
}

/** Writes or replaces the comment. A pull request from a fork has no token that may, so its report stays in the summary. */
async function writeComment(body) {
  const { pull_request: pull, repository } = event;
  const { GITHUB_TOKEN: token, GITHUB_API_URL: api = "https://api.github.com" } = env;
  const name = repository?.full_name ?? "";
  const isOwn = pull?.head?.repo?.full_name === name && /^[\w.-]+\/[\w.-]+$/.test(name);
  if (!isOwn || !token || env.COMPARE_COMMENT === "false" || !Number.isSafeInteger(pull.number)) return;
  const headers = { authorization: `Bearer ${token}`, accept: "application/vnd.github+json" };
  const ask = async (path, method = "GET", content = undefined) => {
    const answer = await fetch(`${api}/repos/${name}${path}`, {
      method,
      headers,
      body: content && JSON.stringify(content),
    });
    if (!answer.ok) throw new Error(`GitHub answered ${answer.status}`);
    return answer.json();
  };
  try {
    const comments = await ask(`/issues/${pull.number}/comments?per_page=100`);
    const own = comments.find((each) => each.user?.type === "Bot" && each.body?.startsWith(marker));
    if (own === undefined) await ask(`/issues/${pull.number}/comments`, "POST", { body });
    else await ask(`/issues/comments/${Number(own.id)}`, "PATCH", { body });
  } catch (error) {
    // The report is in the summary anyway.
    console.error(`compare-tokens: could not write a comment: ${error.message}`);
  }
}

function runPlimsoll(args, cwd) {
  const [program, ...first] = existsSync(ownMain) ? [process.execPath, ownMain] : ["plimsoll"];
  const { GITHUB_TOKEN: _, ...rest } = env;
  const result = spawnSync(program, [...first, ...args], { cwd, env: { ...rest, NO_COLOR: "1" }, encoding: "utf8" });
  if (result.error !== undefined) throw result.error;
  return result;
}

/** Runs no hook of the repository. */
function git(args) {
  const { GITHUB_TOKEN: _, ...rest } = env;
  return spawnSync("git", ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", ...args], {
    env: rest,
    encoding: "utf8",
  });
}
