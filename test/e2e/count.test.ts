import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const bytes4 = ["--counter", "bytes/4"];

test("a table has the counter's name, the largest file first, and the total", async () => {
  sandbox.write("a.md", "x".repeat(40));
  sandbox.write("docs/b.md", "x".repeat(4400));
  sandbox.write("empty", "");
  expect(await sandbox.run(["count", ".", ...bytes4])).toEqual({
    code: 0,
    stderr: "",
    stdout: `bytes/4  bytes  file
  1,100  4,400  docs/b.md
     10     40  a.md
      0      0  empty
  1,110  4,440  total of 3 files
`,
  });
});

test("JSON has every file by path, the total, and what was skipped", async () => {
  sandbox.write("b.md", "größe");
  sandbox.write("a/c.md", "12345");
  sandbox.write("logo.png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]));
  const { code, stdout } = await sandbox.call(["count", ".", "--counter", "bytes/4,chars/3.5", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    files: [
      { path: "a/c.md", bytes: 5, tokens: { "bytes/4": 2, "chars/3.5": 2 } },
      { path: "b.md", bytes: 7, tokens: { "bytes/4": 2, "chars/3.5": 2 } },
    ],
    total: { bytes: 12, tokens: { "bytes/4": 4, "chars/3.5": 4 } },
    skipped: [{ path: "logo.png", reason: "binary file" }],
  });
});

test("several counters stand side by side, each once, given by comma or by repeating", async () => {
  sandbox.write("a", "abcdefgh");
  const { stdout } = await sandbox.call(["count", "a", "--counter", "bytes/4,chars/3.5", "--counter", "bytes/4"]);
  expect(stdout.split("\n")[0]).toBe("bytes/4  chars/3.5  bytes  file");
});

test("standard input is read for -, and when something is piped in and no file is named", async () => {
  for (const args of [["count", "-"], ["count"], ["count", "-", "-"]]) {
    const { code, stdout } = await sandbox.run([...args, ...bytes4, "--json"], { input: "12345678" });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).files).toEqual([{ path: "-", bytes: 8, tokens: { "bytes/4": 2 } }]);
  }
});

test("without input and without a name the current directory is counted", async () => {
  sandbox.write("a", "abcd");
  const { stdout } = await sandbox.call(["count", ...bytes4, "--json"]);
  expect(JSON.parse(stdout).files).toEqual([{ path: "a", bytes: 4, tokens: { "bytes/4": 1 } }]);
});

test("a file is counted once however often it is named, and paths are relative to here", async () => {
  sandbox.write("d/a", "abcd");
  sandbox.write("e/b", "abcd");
  const names = ["count", "a", "./a", ".", join(sandbox.cwd, "d/a"), "../e", ...bytes4, "--json"];
  const { stdout } = await sandbox.call(names, { cwd: join(sandbox.cwd, "d") });
  expect(JSON.parse(stdout).files.map(({ path }: { path: string }) => path)).toEqual(["../e/b", "a"]);
});

test("each bad input has its own message, the others are counted, and the exit code is 1", async () => {
  sandbox.write("good.md", "abcd");
  sandbox.write("image.bin", Buffer.from([1, 2, 0, 3]));
  sandbox.write("latin.txt", Buffer.from("ok\ngr\xfc\xdfe", "latin1"));
  sandbox.write("wide.txt", Buffer.from("\uFEFFhello", "utf16le"));
  symlinkSync("circle", join(sandbox.cwd, "circle"));
  const names = ["missing.md", "good.md", "image.bin", "latin.txt", "wide.txt", "circle", "good.md/x"];
  const { code, stdout, stderr } = await sandbox.call(["count", ...names, ...bytes4]);
  expect(code).toBe(1);
  expect(stdout).toContain("total of 1 file\n");
  expect(stderr).toBe(`plimsoll: circle: its symbolic links lead in a circle
plimsoll: good.md/x: a part of its path is not a directory
plimsoll: image.bin: binary file
plimsoll: latin.txt: invalid UTF-8 in line 2: convert it first
plimsoll: missing.md: no such file or directory
plimsoll: wide.txt: UTF-16 text, only UTF-8 is read: convert it first
`);
  const quiet = await sandbox.call(["count", ...names, ...bytes4, "--quiet", "--json"]);
  expect(quiet).toMatchObject({ code: 1, stderr });
  expect(JSON.parse(quiet.stdout).skipped).toHaveLength(6);
});

test("in a directory, binary files and links are a note and no failure; unreadable text is a failure", async () => {
  for (const name of ["a", "b", "c", "d", "e"]) sandbox.write(`${name}.png`, Buffer.from([0]));
  sandbox.write("text.md", "abcd");
  symlinkSync("text.md", join(sandbox.cwd, "link.md"));
  const fine = await sandbox.call(["count", ".", ...bytes4]);
  expect(fine.code).toBe(0);
  expect(fine.stderr).toContain("plimsoll: skipped, binary file: a.png, b.png, c.png and 2 more\n");
  expect(fine.stderr).toContain("plimsoll: skipped, symbolic link: link.md\n");
  expect((await sandbox.call(["count", ".", ...bytes4, "--quiet"])).stderr).toBe("");
  sandbox.write("latin.txt", Buffer.from([0xfc]));
  const failed = await sandbox.call(["count", ".", ...bytes4, "--quiet"]);
  expect(failed).toMatchObject({
    code: 1,
    stderr: "plimsoll: latin.txt: invalid UTF-8 in line 1: convert it first\n",
  });
});

test("what .gitignore leaves out is not counted", async () => {
  makeRepository(sandbox.cwd);
  sandbox.write(".gitignore", "dist/\n");
  sandbox.write("dist/a.js", "abcd");
  sandbox.write("src/a.ts", "abcd");
  const { stdout } = await sandbox.call(["count", ".", ...bytes4, "--json"]);
  expect(JSON.parse(stdout).files.map(({ path }: { path: string }) => path)).toEqual([".gitignore", "src/a.ts"]);
});

// Permissions do not bind root: there the command runs as nobody, if setpriv is present and nobody can reach the build.
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const isRoot = process.getuid?.() === 0;
const nobodyWorks =
  isRoot && spawnSync(asNobody[0]!, [...asNobody.slice(1), process.execPath, mainFile, "-V"]).status === 0;

test.skipIf(isRoot && !nobodyWorks)(
  "a file and a directory without permission are named, the others counted",
  async () => {
    sandbox.write("open/a", "abcd");
    sandbox.write("open/shut", "abcd");
    sandbox.write("open/closed/b", "abcd");
    chmodSync(join(sandbox.cwd, ".."), 0o755);
    chmodSync(join(sandbox.cwd, "open/shut"), 0);
    chmodSync(join(sandbox.cwd, "open/closed"), 0);
    const options = isRoot ? { wrapper: asNobody } : {};
    const { code, stdout, stderr } = await sandbox.run(["count", "open", ...bytes4, "--json"], options);
    chmodSync(join(sandbox.cwd, "open/closed"), 0o755);
    expect(code).toBe(1);
    expect(JSON.parse(stdout).files).toEqual([{ path: "open/a", bytes: 4, tokens: { "bytes/4": 1 } }]);
    expect(stderr).toBe(
      "plimsoll: open/closed: no permission to read it\nplimsoll: open/shut: no permission to read it\n",
    );
  },
);

test("a file too large to hold is refused by its size, quickly", async () => {
  sandbox.write("huge.log", "x".repeat(10_000));
  truncateSync(join(sandbox.cwd, "huge.log"), 3 * 1024 ** 3);
  const { code, stderr } = await sandbox.run(["count", "huge.log", ...bytes4], {
    env: { NODE_OPTIONS: "--max-old-space-size=64" },
  });
  expect(code).toBe(1);
  expect(stderr).toBe("plimsoll: huge.log: 3072 MB, files above 100 MB are not read: split it\n");
});

test("names with line breaks and control characters cannot break the table or steer the terminal", async () => {
  sandbox.write("a\nb\u001b[31m", "abcd");
  const { stdout } = await sandbox.call(["count", ".", ...bytes4]);
  expect(stdout).toContain("  a\\nb\\x1b[31m\n");
  expect(stdout).not.toContain("\u001b");
  const json = await sandbox.call(["count", ".", ...bytes4, "--json"]);
  expect(JSON.parse(json.stdout).files[0].path).toBe("a\nb\u001b[31m");
});

test("a pipe given as a file is read to its end", async () => {
  const script = `"${process.execPath}" "${mainFile}" count <(printf 12345678) --counter bytes/4 --json`;
  const { code, stdout } = await runProcess(["bash", "-c", script], { cwd: sandbox.cwd, env: sandbox.env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout).total).toEqual({ bytes: 8, tokens: { "bytes/4": 2 } });
});

test("a directory as standard input is a failure", async () => {
  const script = `"${process.execPath}" "${mainFile}" count - --counter bytes/4 --json < "${sandbox.cwd}"`;
  const { code, stdout, stderr } = await runProcess(["bash", "-c", script], {
    cwd: sandbox.cwd,
    env: sandbox.env,
  });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "plimsoll: -: is a directory\n" });
  expect(JSON.parse(stdout)).toMatchObject({ files: [], skipped: [{ path: "-", reason: "is a directory" }] });
});

test("what is skipped is listed once however many directories hold it, and a link that is named is counted", async () => {
  sandbox.write("d/sub/a.png", Buffer.from([0]));
  sandbox.write("d/text", "abcd");
  symlinkSync("../text", join(sandbox.cwd, "d/sub/link"));
  symlinkSync("text", join(sandbox.cwd, "d/named"));
  const { code, stdout } = await sandbox.call(["count", "d", "d/sub", "d/named", ...bytes4, "--json"]);
  expect(code).toBe(0);
  const { files, skipped } = JSON.parse(stdout);
  expect(files.map(({ path }: { path: string }) => path)).toEqual(["d/named", "d/text"]);
  expect(skipped).toEqual([
    { path: "d/sub/a.png", reason: "binary file" },
    { path: "d/sub/link", reason: "symbolic link" },
  ]);
});

test("a pipe in the place of .gitignore does not hold the command up", async () => {
  sandbox.write("a", "abcd");
  spawnSync("mkfifo", [join(sandbox.cwd, ".gitignore")]);
  const { code, stdout } = await sandbox.run(["count", ".", ...bytes4, "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    files: [{ path: "a" }],
    skipped: [{ path: ".gitignore", reason: "not a file" }],
  });
});

test("an empty directory is no failure", async () => {
  mkdirSync(join(sandbox.cwd, "void"));
  const { code, stdout } = await sandbox.call(["count", "void", ...bytes4]);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: "bytes/4  bytes  file\n      0      0  total of 0 files\n",
  });
});

test("an unknown counter is wrong usage with a suggestion, and nothing is counted", async () => {
  sandbox.write("a", "abcd");
  const { code, stdout, stderr } = await sandbox.call(["count", "a", "--counter", "estimate:claude5"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain('--counter is "estimate:claude5". Did you mean "estimate:claude-5"?');
});

test("the counter comes from --counter, else --model, else the configuration, else the dearest, and is always named", async () => {
  sandbox.write("a", "hello world\n");
  const counterOf = async (...args: string[]) => {
    const { stdout, stderr } = await sandbox.call(["count", "a", "--json", ...args]);
    return { counters: Object.keys(JSON.parse(stdout).total.tokens), stderr };
  };
  expect(await counterOf()).toEqual({
    counters: ["estimate:claude-5"],
    stderr:
      "plimsoll: no --model given, so tokens are counted with estimate:claude-5, which gives the highest numbers\n",
  });
  expect(await counterOf("--quiet")).toEqual({ counters: ["estimate:claude-5"], stderr: "" });
  sandbox.write(".plimsoll/config.yaml", "counter: bytes/3.5\n");
  expect(await counterOf()).toEqual({ counters: ["bytes/3.5"], stderr: "" });
  expect(await counterOf("--model", "gpt-5")).toEqual({ counters: ["estimate:o200k"], stderr: "" });
  expect(await counterOf("--model", "wibble-1")).toEqual({
    counters: ["estimate:claude-5"],
    stderr:
      'plimsoll: unknown model "wibble-1", so tokens are counted with estimate:claude-5, which gives the highest numbers\n',
  });
  expect(await counterOf("--counter", "auto,bytes/4,estimate:o200k", "--model", "gpt-5")).toEqual({
    counters: ["estimate:o200k", "bytes/4"],
    stderr: "",
  });
  expect(await counterOf("--counter", "bytes/4", "--model", "gpt-5")).toEqual({
    counters: ["bytes/4"],
    stderr: "plimsoll: --model has no effect with --counter bytes/4\n",
  });
});
