/** Every command over hostile projects, under strace: which programs it starts, which files it opens, whether it connects. */
import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { buildHostile, hostileNames, outsideSecret, ownSecret } from "./hostile-repositories.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";
import { isBelow, isSystemPath, runTraced, type Trace, whyNoTrace } from "./traced.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const whyNot = await whyNoTrace();
if (whyNot !== undefined) console.log(`hostile projects are not traced: ${whyNot}`);

/** The built command and what it loads. */
const package_ = realpathSync(fileURLToPath(new URL("../..", import.meta.url)));

const sandboxes: Sandbox[] = [];
afterAll(() => {
  for (const sandbox of sandboxes) sandbox.remove();
});

interface Project {
  readonly sandbox: Sandbox;
  readonly root: string;
  /** There as soon as a program of the project's choice has run. */
  readonly mark: string;
}

/** What a project's own files can say: each asks for a program, for a file elsewhere, for the network, or for a place of state. */
type Plant = (project: Project & { readonly outside: string }) => void;

const plants: Readonly<Record<string, Plant>> = {
  "a store elsewhere": ({ root, outside }) => {
    plant(root, ".plimsoll/config.yaml", `title: Ours\nstore: ${join(outside, "planted.db")}\n`);
  },
  "a company layer that is the user's own": ({ root, sandbox }) => {
    const own = join(sandbox.home, ".config/plimsoll/packs/private");
    plant(own, "pack.yaml", "id: private\nname: Private\n");
    plant(own, "context.md", `${outsideSecret}\n`);
    plant(root, ".plimsoll/config.yaml", "company: { source: ~/.config/plimsoll }\n");
  },
  "a company layer outside, with a link to it": ({ root, outside }) => {
    plant(root, ".plimsoll/config.yaml", "company: { source: shared }\n");
    symlinkSync(outside, join(root, "shared"));
  },
  "a company layer on the network": ({ root }) => {
    plant(root, ".plimsoll/config.yaml", "company: { source: https://127.0.0.1:9/x.git, revision: main }\n");
  },
  "texts to fetch": ({ root }) => {
    plant(root, ".plimsoll/packs/a/pack.yaml", "id: a\nname: A\n");
    plant(root, ".plimsoll/packs/a/context.md", '# A\n\n<!-- sync:fetch url="http://127.0.0.1:9/x" -->\n');
  },
  "packs, notes and a configuration that are links": ({ root, outside }) => {
    plant(root, ".plimsoll/packs/a/pack.yaml", "id: a\nname: A\n");
    symlinkSync(join(outside, "secret.txt"), join(root, ".plimsoll/packs/a/context.md"));
    symlinkSync(join(outside, "secret.txt"), join(root, ".plimsoll/notes.yaml"));
    symlinkSync(outside, join(root, ".plimsoll/packs/b"));
  },
  "a nebula that moves its agent and passes flags": ({ root, outside, mark }) => {
    plant(root, "plan/nebula.toml", `[nebula]\nname = "plan"\n[context]\nworking_dir = "${outside}"\n`);
    const model = "--dangerously-skip-permissions";
    plant(root, "plan/a.md", `+++\nid = "a"\ntitle = "A"\nmodel = "${model}"\n+++\ntouch ${mark}\n`);
  },
  "YAML that no parser should take": ({ root }) => {
    plant(root, ".plimsoll/packs/a/pack.yaml", "!!binary aaaa\n");
    plant(root, ".plimsoll/config.yaml", `${"? ".repeat(30)}a\n`);
    plant(root, ".plimsoll/notes.yaml", "}".repeat(1_000_000));
  },
};

function plant(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** Every command that reads a project. What would wait for a person or for a client gets an end of input. */
const commands: readonly (readonly string[])[] = [
  ["inject", "--dry-run", "--all"],
  ["inject", "--status"],
  ["inject", "--check"],
  ["inject"],
  ["inject", "--uninstall"],
  ["import", "--dry-run"],
  ["packs", "list"],
  ["packs", "show", "base"],
  ["packs", "lint"],
  ["notes", "list"],
  ["sync"],
  ["audit"],
  ["config"],
  ["count", "."],
  ["snapshot"],
  ["compose", "--snapshot"],
  ["run", "--dry-run", "--agent-command", "true", "x"],
  ["nebula", "validate", "plan"],
  ["nebula", "show", "plan"],
  ["nebula", "apply", "plan", "--dry-run", "--agent", "opencode"],
  ["fabric", "show", "--nebula", "plan"],
  ["session", "list"],
  ["trust", "--list"],
  ["mcp"],
];

/** In every run: two that write, one that shows, one that would start an agent, and every tool. The full numbers take all. */
const few = [
  ["inject"],
  ["import", "--dry-run"],
  ["snapshot"],
  ["nebula", "apply", "plan", "--dry-run", "--agent", "opencode"],
  ["mcp"],
];

/** The plants of every run: the commands that open a store, and those that read packs. */
const everydayPlants: Readonly<Record<string, typeof commands>> = {
  "a store elsewhere": [["mcp"]],
  "packs, notes and a configuration that are links": few,
};

/** A client's first words, then a call of each tool. */
const mcpInput = [
  {
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  },
  ...["project_files", "vcs_status", "vcs_diff", "vcs_log"].map((name) => ({
    method: "tools/call",
    params: { name, arguments: {} },
  })),
  {
    method: "tools/call",
    params: { name: "search_content", arguments: { pattern: "outside|own|PASSWORD" } },
  },
  ...["read_file", "vcs_blame"].map((name) => ({
    method: "tools/call",
    params: { name, arguments: { path: "notes.txt" } },
  })),
]
  .map((message, id) => `${JSON.stringify({ jsonrpc: "2.0", id, ...message })}\n`)
  .join("");

/** Programs that the person installed: git with its own parts, ripgrep, the shell that the wrapper of agents needs. */
function strangePrograms({ programs }: Trace): string[] {
  return programs.filter(
    (path) => !/\/(node|git|rg|git-[\w-]+)$/.test(path) || !(isSystemPath(path) || isBelow(path, package_)),
  );
}

/** git reads where a `.git` leads before it can say that the work tree is another one. */
const gitOwn = /\/\.git\/(HEAD|config|commondir|info\/exclude)$/;

function strangeFiles({ opened }: Trace, { sandbox, root }: Project): string[] {
  // The root may be a folder inside of a repository.
  const repository = root.replace(/(plimsoll-hostile-[^/]+\/root)\/.*/, "$1");
  const own = [repository, package_, realpathSync(sandbox.home)];
  return opened.filter(
    (path) =>
      path.startsWith("/") && !isSystemPath(path) && !gitOwn.test(path) && !own.some((place) => isBelow(path, place)),
  );
}

/** What the command did that the project must not bring about, a line each. */
async function harm(project: Project, command: readonly string[]): Promise<string[]> {
  const { sandbox, root, mark } = project;
  const input = command[0] === "mcp" ? mcpInput : undefined;
  const trace = await runTraced(sandbox, command, { cwd: root, ...(input !== undefined && { input }) });
  const { code, stdout, stderr } = trace;
  const shown = [outsideSecret, ownSecret].filter((secret) => (stdout + stderr).includes(secret));
  const done = [
    ...(code === 0 || code === 1 ? [] : [`ended with ${code}: ${stderr}`]),
    ...(existsSync(mark) ? ["ran a program of the project's"] : []),
    ...shown.map((secret) => `printed ${secret}`),
    ...strangePrograms(trace).map((path) => `started ${path}`),
    // What AI tools would load through a link is what audit counts; it shows no text.
    ...(command[0] === "audit" ? [] : strangeFiles(trace, project)).map((path) => `opened ${path}`),
    ...trace.connected.map((address) => `connected to ${address}`),
  ];
  return done.map((each) => `plimsoll ${command.join(" ")} ${each}`);
}

async function harmOfAll(project: Project, all: typeof commands): Promise<string[]> {
  const found: string[] = [];
  for (const command of all) found.push(...(await harm(project, command)));
  return found;
}

function open(name: string): Project {
  const sandbox = createSandbox();
  sandboxes.push(sandbox);
  const { root, mark, remove } = buildHostile(name);
  onTestFinished(remove);
  if (!existsSync(join(root, "plan"))) {
    plant(root, "plan/nebula.toml", '[nebula]\nname = "plan"\n');
    plant(root, "plan/a.md", '+++\nid = "a"\ntitle = "A"\n+++\nDo it.\n');
  }
  return { sandbox, root, mark };
}

describe.skipIf(whyNot !== undefined)("under strace", () => {
  test.each(Object.keys(isDeep ? plants : everydayPlants))(
    "a project with %s changes nothing outside of itself",
    { timeout: 180_000 },
    async (name) => {
      const project = open("secrets, and links to them");
      plants[name]!({ ...project, outside: join(dirname(project.root), "outside") });
      expect(await harmOfAll(project, isDeep ? commands : everydayPlants[name]!)).toEqual([]);
      expect(existsSync(join(dirname(project.root), "outside/planted.db"))).toBe(false);
    },
  );

  // The deep run has all of them.
  test.each(isDeep ? hostileNames : hostileNames.slice(0, 1))(
    "a repository with %s changes nothing outside of itself",
    { timeout: 180_000 },
    async (name) => {
      const project = open(name);
      expect(await harmOfAll(project, isDeep ? commands : [["mcp"]])).toEqual([]);
    },
  );
});
