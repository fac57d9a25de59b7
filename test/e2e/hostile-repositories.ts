/** Repositories that try to run a program, to read outside of their root, or to give a secret away. Each is built into a temporary
 *  folder. A program that ran has made the file `mark`; what must never come out is `outsideSecret` or `ownSecret`. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface HostileRepository {
  /** What a person opens. */
  readonly root: string;
  /** There as soon as a program of the repository's choice has run. */
  readonly mark: string;
  /** A tracked file of the root, changed since its commit. */
  readonly file: string;
  remove(): void;
}

/** In files beside the root, which nothing may read. */
export const outsideSecret = "outside-7f3a9c51d2e84b60";
/** In files of the root that the deny list names. */
export const ownSecret = "own-5be1c07a94d3f826";

/** What a case does to its repository. */
interface Workshop {
  /** The root, with a commit of `notes.txt` in it. */
  readonly root: string;
  /** A folder beside the root. */
  readonly outside: string;
  /** A line for a shell that makes the mark and passes its input on. */
  readonly program: string;
  write(path: string, text: string | Buffer): void;
  link(path: string, target: string): void;
  git(...args: readonly string[]): string;
}

/** Another root than the workshop's, where a case returns one. */
type Hostility = (workshop: Workshop) => string | undefined;

const hostileCases: Readonly<Record<string, Hostility>> = {
  "a folder laid out as a bare repository": (shop) => {
    const folder = join(shop.root, "vendor/parts");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "notes.txt"), "one\n");
    writeFileSync(join(folder, ".gitattributes"), "* filter=own diff=own\n");
    gitIn(folder, "init", "--quiet");
    gitIn(folder, "add", "--all");
    gitIn(folder, "commit", "--quiet", "-m", "Inside");
    for (const name of ["HEAD", "config", "index", "objects", "refs"])
      renameSync(join(folder, ".git", name), join(folder, name));
    rmSync(join(folder, ".git"), { recursive: true });
    const config = ["core.bare=false", "core.worktree=.", ...programKeys(shop.program)];
    for (const setting of config) setIn(join(folder, "config"), setting);
    writeFileSync(join(folder, "notes.txt"), "two\n");
    return folder;
  },
  "textconv and external diffs": (shop) => {
    shop.write(".gitattributes", "* diff=own\n");
    for (const name of ["diff.own.textconv", "diff.own.command", "diff.external"])
      shop.git("config", name, shop.program);
    return undefined;
  },
  "clean and smudge filters": (shop) => {
    shop.write(".gitattributes", "*.txt filter=own\n");
    for (const name of ["clean", "smudge"]) shop.git("config", `filter.own.${name}`, shop.program);
    shop.git("config", "filter.own.required", "true");
    return undefined;
  },
  "a filter process": (shop) => {
    shop.write(".gitattributes", "*.txt filter=own\n");
    shop.git("config", "filter.own.process", shop.program);
    shop.git("config", "filter.own.required", "true");
    return undefined;
  },
  "a filter with an odd name": (shop) => {
    shop.write(".git/info/attributes", "*.txt filter=a=b.c.clean\n");
    shop.git("config", "filter.a=b.c.clean.clean", shop.program);
    return undefined;
  },
  "a filter whose name is not UTF-8": (shop) => {
    shop.write(".git/info/attributes", Buffer.from("*.txt filter=\xff\n", "latin1"));
    const clean = shop.program.replaceAll('"', '\\"');
    appendFileSync(join(shop.root, ".git/config"), Buffer.from(`[filter "\xff"]\n\tclean = "${clean}"\n`, "latin1"));
    return undefined;
  },
  "a file system monitor": (shop) => {
    shop.git("config", "core.fsmonitor", shop.program);
    shop.git("update-index", "--fsmonitor");
    return undefined;
  },
  hooks: (shop) => {
    const names = ["post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"];
    for (const name of names) {
      shop.write(`.git/hooks/${name}`, `#!/bin/sh\n${shop.program}\n`);
      chmodSync(join(shop.root, ".git/hooks", name), 0o755);
    }
    return undefined;
  },
  "programs for people and servers": (shop) => {
    for (const setting of programKeys(shop.program)) {
      const at = setting.indexOf("=");
      shop.git("config", setting.slice(0, at), setting.slice(at + 1));
    }
    return undefined;
  },
  "settings in an included file": (shop) => {
    shop.write(".gitattributes", "*.txt filter=own diff=own\n");
    shop.write("tools/settings", `[filter "own"]\n\tclean = "${shop.program.replaceAll('"', '\\"')}"\n`);
    shop.git("config", "include.path", "../tools/settings");
    shop.git("config", "includeIf.onbranch:**.path", "../tools/settings");
    return undefined;
  },
  "settings of one worktree": (shop) => {
    shop.write(".gitattributes", "*.txt filter=own diff=own\n");
    shop.git("config", "extensions.worktreeConfig", "true");
    for (const name of ["filter.own.clean", "diff.own.textconv", "core.fsmonitor"])
      shop.git("config", "--worktree", name, shop.program);
    return undefined;
  },
  "a submodule with settings of its own": (shop) => {
    addSubmodule(shop);
    for (const name of ["filter.own.clean", "core.fsmonitor", "diff.own.textconv"])
      gitIn(join(shop.root, "lib"), "config", name, shop.program);
    return undefined;
  },
  "a submodule whose work tree is elsewhere": (shop) => {
    addSubmodule(shop);
    gitIn(join(shop.root, "lib"), "config", "core.worktree", shop.outside);
    return undefined;
  },
  "objects that a server promises": (shop) => {
    shop.git("config", "remote.origin.url", `ext::sh -c ${shop.program.replaceAll(" ", "% ")}`);
    shop.git("config", "remote.origin.promisor", "true");
    shop.git("config", "extensions.partialClone", "origin");
    shop.git("config", "protocol.ext.allow", "always");
    shop.git("config", "protocol.allow", "always");
    const blob = shop.git("rev-parse", "HEAD:notes.txt").trim();
    rmSync(join(shop.root, ".git/objects", blob.slice(0, 2), blob.slice(2)));
    return undefined;
  },
  "a work tree at an absolute path": (shop) => {
    shop.git("config", "core.worktree", shop.outside);
    return undefined;
  },
  "a work tree at a relative path": (shop) => {
    shop.git("config", "core.worktree", "../../outside");
    return undefined;
  },
  "a .git file that names another repository": (shop) => {
    const other = join(shop.outside, "other");
    createIn(other, { "notes.txt": `${outsideSecret}\n` });
    rmSync(join(shop.root, ".git"), { recursive: true });
    shop.write(".git", `gitdir: ${join(other, ".git")}\n`);
    return undefined;
  },
  "a .git link to another repository": (shop) => {
    const other = join(shop.outside, "other");
    createIn(other, { "notes.txt": `${outsideSecret}\n` });
    rmSync(join(shop.root, ".git"), { recursive: true });
    shop.link(".git", join(other, ".git"));
    return undefined;
  },
  "a shared directory that is another repository's": (shop) => {
    const other = join(shop.outside, "other");
    createIn(other, { "notes.txt": `${outsideSecret}\n` });
    shop.write(".git/commondir", `${join(other, ".git")}\n`);
    return undefined;
  },
  "links in the git directory": (shop) => {
    shop.link(".git/packed-refs", join(shop.outside, "secret.txt"));
    shop.link(".git/shallow", join(shop.outside, "secret.txt"));
    mkdirSync(join(shop.root, ".git/objects/info"), { recursive: true });
    shop.link(".git/objects/info/alternates", join(shop.outside, "secret.txt"));
    return undefined;
  },
  "a list of revisions to ignore that lies outside": (shop) => {
    shop.git("config", "blame.ignoreRevsFile", join(shop.outside, "secret.txt"));
    return undefined;
  },
  "links that lead out": (shop) => {
    shop.link("AGENTS.md", join(shop.outside, "secret.txt"));
    shop.link("CLAUDE.md", "../outside/secret.txt");
    shop.link("package.json", join(shop.outside, "package.json"));
    shop.link("way-out", shop.outside);
    shop.write("tracked/file.txt", "tracked\n");
    shop.git("add", "--all");
    shop.git("commit", "--quiet", "-m", "Links");
    rmSync(join(shop.root, "tracked"), { recursive: true });
    writeFileSync(join(shop.outside, "file.txt"), `${outsideSecret}\n`);
    shop.link("tracked", shop.outside);
    return undefined;
  },
  "secrets, and links to them": (shop) => {
    const names = [".env", "config/.ENV.local", "deploy/server.pem", "credentials.json", ".npmrc"];
    for (const name of [...names, ".envrc", ".env-prod", "shop.tfstate", "kubeconfig", "secrets/db.yaml"])
      shop.write(name, `PASSWORD=first-${ownSecret}\n`);
    shop.git("add", "--all");
    shop.git("commit", "--quiet", "-m", "Settings");
    for (const name of [".env", "config/.ENV.local"]) shop.write(name, `PASSWORD=${ownSecret}\n`);
    shop.link("AGENTS.md", ".env");
    shop.link("CONTRIBUTING.md", "deploy/server.pem");
    shop.link("readme.txt", "config/.ENV.local");
    shop.write("GEMINI.md", "See @credentials.md\n");
    shop.write("credentials.md", `token: ${ownSecret}\n`);
    return undefined;
  },
};

export const hostileNames: readonly string[] = Object.keys(hostileCases);

export function buildHostile(name: string): HostileRepository {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-hostile-")));
  const [root, outside, mark] = [join(folder, "root"), join(folder, "outside"), join(folder, "mark")];
  createIn(root, { "notes.txt": "one\n" });
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.txt"), `${outsideSecret}\n`);
  writeFileSync(join(outside, "notes.txt"), `${outsideSecret}\n`);
  writeFileSync(join(outside, "package.json"), `{ "name": "${outsideSecret}" }\n`);
  const write = (path: string, text: string | Buffer) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write("notes.txt", "two\n");
  const hostility = hostileCases[name];
  if (hostility === undefined) throw new Error(`there is no case "${name}"`);
  const opened = hostility({
    ...{ root, outside, write, program: `touch '${mark}'; cat` },
    link: (path, target) => symlinkSync(target, join(root, path)),
    git: (...args) => gitIn(root, ...args),
  });
  // Building a case may have run its own program.
  rmSync(mark, { force: true });
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { root: opened ?? root, mark, file: "notes.txt", remove };
}

/** Every setting that names a program and needs no attribute of a file. */
function programKeys(program: string): string[] {
  const names = [
    ...["core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"],
    ...["core.alternateRefsCommand", "sequence.editor", "interactive.diffFilter", "diff.external"],
    ...["credential.helper", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "trailer.own.command"],
    ...["pager.log", "pager.diff", "pager.status", "pager.blame", "pager.show", "pager.config"],
    ...["alias.log", "alias.status", "alias.rev-parse", "merge.own.driver", "mergetool.own.cmd"],
    ...["filter.own.clean", "filter.own.smudge", "filter.own.process", "diff.own.textconv"],
    ...["diff.own.command", "uploadpack.packObjectsHook", "remote.origin.uploadpack", "browser.own.cmd"],
  ];
  return names.map((name) => `${name}=${name.startsWith("alias.") ? "!" : ""}${program}`);
}

function addSubmodule(shop: Workshop): void {
  const inner = join(shop.outside, "inner");
  createIn(inner, { "part.txt": "one\n", ".gitattributes": "*.txt filter=own diff=own\n" });
  shop.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "lib");
  shop.git("commit", "--quiet", "-m", "Add a part");
  shop.write("lib/part.txt", "two\n");
}

function createIn(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  gitIn(root, "init", "--quiet", "--initial-branch=main");
  gitIn(root, "add", "--all");
  gitIn(root, "commit", "--quiet", "-m", "Begin");
}

function setIn(file: string, setting: string): void {
  const at = setting.indexOf("=");
  gitIn(dirname(file), "config", "--file", file, setting.slice(0, at), setting.slice(at + 1));
}

function gitIn(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, env: buildEnvironment, encoding: "utf8", stdio: "pipe" });
}

const buildEnvironment: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  // Neither sample hooks in each repository nor a process for maintenance after each commit.
  GIT_TEMPLATE_DIR: "",
  ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "maintenance.auto", GIT_CONFIG_VALUE_0: "false" },
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
};
