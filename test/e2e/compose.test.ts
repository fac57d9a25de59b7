import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const lines = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at}\n`).join("");
const fabric = `## Entanglements\n${"- an entanglement\n".repeat(60)}\n## Discoveries\n- the port is taken\n`;

test("the layers come in their order, byte for byte where they fit, with nothing added", async () => {
  sandbox.write("docs/project.md", "# Project\n");
  sandbox.write("fabric.md", fabric);
  sandbox.write("prior.md", "\uFEFFdone");
  const args = ["compose", "--prior", "prior.md", "--project", "docs/project.md", "--fabric", "fabric.md"];
  expect(await sandbox.run(args)).toEqual({
    code: 0,
    stderr: "",
    stdout: `# Project\n\n\n---\n\n${fabric}\n\n---\n\ndone`,
  });
});

test("what is printed is within the budget, and what was cut is told on stderr", async () => {
  sandbox.write("project.md", lines(500));
  sandbox.write("fabric.md", fabric);
  const args = ["compose", "--project", "project.md", "--fabric", "fabric.md", "--max-context-tokens", "200"];
  const { code, stdout, stderr } = await sandbox.call(args);
  expect(code).toBe(0);
  expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(800);
  expect(stdout).toMatch(/^line 0\n.*\n\[truncated\]\n\n---\n\n## Entanglements\n/s);
  expect(stdout).toMatch(
    /\.\.\. and \d+ more entanglements\n\n## Discoveries\n- the port is taken\n\n\[\.\.\. truncated, \d+ items omitted\]$/,
  );
  expect(stderr).toMatch(/^plimsoll: context: \d+ of 200 tokens \(bytes\/4\)\n/);
  expect(stderr).toMatch(/plimsoll: project: \d+ tokens, truncated, \d+ lines omitted\n/);
  expect(stderr).toMatch(/plimsoll: fabric: \d+ tokens, truncated, \d+ items omitted\n/);
  expect(await sandbox.call([...args, "--quiet"])).toEqual({ code: 0, stdout, stderr: "" });
});

test("JSON has the text, the facts of each layer, the budget and the counter", async () => {
  sandbox.write("project.md", "12345678");
  sandbox.write("prior.md", lines(50));
  const args = ["compose", "--project", "project.md", "--prior", "prior.md", "--max-context-tokens", "40", "--json"];
  const { code, stdout } = await sandbox.call(args);
  const { text, ...facts } = JSON.parse(stdout);
  expect(code).toBe(0);
  expect(text).toMatch(/^12345678\n\n---\n\nline 0\n.*\[truncated\]$/s);
  const kept = text.match(/^line /gm).length;
  expect(Object.keys(JSON.parse(stdout))).toEqual([
    ...["text", "tokens", "maxTokens", "counter", "layers", "omitted", "overflow"],
  ]);
  expect(facts).toEqual({
    tokens: Math.ceil(text.length / 4),
    maxTokens: 40,
    counter: "bytes/4",
    layers: [
      { name: "project", tokens: 2, truncated: false, omitted: 0 },
      { name: "priorWork", tokens: Math.ceil((text.length - 15) / 4), truncated: true, omitted: 50 - kept },
    ],
    omitted: 50 - kept,
    overflow: 0,
  });
});

test("one layer can be piped in, from any place", async () => {
  sandbox.write("prior.md", "done");
  for (const flag of ["--project", "--fabric"]) {
    const { stdout } = await sandbox.run(["compose", flag, "-", "--prior", "prior.md"], { input: "piped" });
    expect(stdout).toBe("piped\n\n---\n\ndone");
  }
  const script = `printf %s "$1" | "${process.execPath}" "${mainFile}" compose --project <(printf file) --prior -`;
  const { stdout } = await runProcess(["bash", "-c", script, "-", "piped"], {
    cwd: sandbox.cwd,
    env: sandbox.env,
  });
  expect(stdout).toBe("file\n\n---\n\npiped");
});

test("budget and shares come from the configuration, and the command line goes before it", async () => {
  sandbox.write(
    ".plimsoll/config.yaml",
    "context:\n  max_tokens: 100\n  shares: { project: 0.1, fabric: 0.1, prior_work: 0.8 }\n",
  );
  sandbox.write("a.md", lines(400));
  const args = ["compose", "--project", "a.md", "--prior", "a.md", "--json"];
  const own = JSON.parse((await sandbox.call(args)).stdout);
  expect(own.maxTokens).toBe(100);
  expect(own.layers[1].tokens).toBeGreaterThan(own.layers[0].tokens * 3);
  const asked = JSON.parse((await sandbox.call([...args, "--max-context-tokens", "300"])).stdout);
  expect(asked.maxTokens).toBe(300);
  expect(asked.tokens).toBeGreaterThan(290);
});

test("the counter is that of --counter, else of --model, else the configuration's", async () => {
  sandbox.write("a.md", lines(400));
  const counterOf = async (...args: string[]) =>
    JSON.parse((await sandbox.call(["compose", "--project", "a.md", "--json", ...args])).stdout).counter;
  expect(await counterOf("--counter", "exact:o200k", "--max-context-tokens", "50")).toBe("exact:o200k");
  expect(await counterOf("--model", "gpt-5")).toBe("estimate:o200k");
  sandbox.write(".plimsoll/config.yaml", "counter: chars/3.5\n");
  expect(await counterOf()).toBe("chars/3.5");
});

test("a snapshot of the project can be the project layer, and 0 composes nothing", async () => {
  sandbox.write("package.json", '{ "name": "harbour" }');
  sandbox.write("prior.md", "done");
  const snapshot = await sandbox.call(["compose", "--snapshot", "--prior", "prior.md"]);
  expect(snapshot.stdout).toContain("harbour");
  expect(snapshot.stdout).toMatch(/\n\n---\n\ndone$/);
  const none = await sandbox.call(["compose", "--snapshot", "--prior", "prior.md", "--max-context-tokens", "0"]);
  expect(none).toEqual({ code: 0, stdout: "", stderr: "plimsoll: the budget is 0, so nothing is composed\n" });
});

test("what a snapshot left out itself is told too", async () => {
  sandbox.write("AGENTS.md", lines(300));
  for (let file = 1; file < 20; file++) sandbox.write(`a-file-with-a-long-name-${file}.txt`, "");
  const args = ["compose", "--snapshot", "--max-context-tokens", "50"];
  const { text, layers, omitted } = JSON.parse((await sandbox.call([...args, "--json"])).stdout);
  const entries = Number(/\n\[\.\.\. truncated, (\d+) entries omitted\]/.exec(text)?.[1]);
  expect(omitted).toBe(entries + 300 - text.match(/^line \d+$/gm).length);
  expect(layers).toMatchObject([{ name: "project", truncated: true, omitted }]);
  const { stderr } = await sandbox.call(args);
  expect(stderr).toContain(`truncated, ${entries} entries and ${omitted - entries} lines omitted\n`);
  const none = JSON.parse((await sandbox.call([...args.with(-1, "2"), "--json"])).stdout);
  expect(none).toMatchObject({ text: "", omitted: 320 });
  expect(none.layers).toEqual([{ name: "project", tokens: 0, truncated: true, omitted: 320 }]);
});

test("beside other layers a snapshot keeps its tree and its conventions, each in part", async () => {
  for (let file = 0; file < 90; file++) sandbox.write(`a-file-with-a-long-name-${file}.txt`, "");
  sandbox.write("AGENTS.md", lines(300));
  sandbox.write("prior.md", lines(500));
  sandbox.write("fabric.md", fabric);
  const args = ["compose", "--snapshot", "--prior", "prior.md", "--fabric", "fabric.md", "--json"];
  const { stdout } = await sandbox.call([...args, "--max-context-tokens", "600"]);
  const { text, tokens, layers } = JSON.parse(stdout);
  const [project] = text.split("\n\n---\n\n");
  expect(project).toMatch(/ entries omitted\]\n```\n\n## Conventions\n\n### AGENTS\.md\n\nline 0\n.*\n\[truncated\]$/s);
  expect(layers[0].truncated).toBe(true);
  expect(layers[0].tokens).toBeGreaterThan(220);
  expect(tokens).toBeGreaterThan(560);
});

test("wrong usage is told before anything is read", async () => {
  sandbox.write("a.md", "a");
  const usage = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await sandbox.call(["compose", ...args]);
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
    return stderr;
  };
  expect(await usage()).toMatch(/^plimsoll: no layer is given\. Name at least one: --project FILE/);
  expect(await usage("--project", "-", "--prior", "-")).toContain("more than one layer");
  expect(await usage("--project", "missing.md", "--snapshot")).toContain("--project and --snapshot are both given");
  for (const value of ["-1", "1.5", "ten", "1e3", ""])
    expect(await usage("--project", "a.md", `--max-context-tokens=${value}`)).toContain("--max-context-tokens");
  expect(await usage("--project", "a.md", "--counter", "bytes/5")).toContain("bytes/5");
  expect(await usage("a.md")).not.toBe("");
});

test("a layer that cannot be read is named, and nothing is printed", async () => {
  sandbox.write("a.md", "a");
  sandbox.write("image.png", Buffer.from([0, 1, 2]));
  const failed = async (name: string): Promise<string> => {
    const run = await sandbox.call(["compose", "--project", "a.md", "--prior", name, "--max-context-tokens", "0"]);
    expect({ name, code: run.code, stdout: run.stdout }).toEqual({ name, code: 1, stdout: "" });
    return run.stderr;
  };
  expect(await failed("missing.md")).toBe("plimsoll: missing.md: no such file or directory\n");
  expect(await failed(join(sandbox.cwd, "image.png"))).toBe("plimsoll: image.png: binary file\n");
  expect(await failed(".")).toBe("plimsoll: .: is a directory\n");
  const { code, stdout } = await sandbox.call(["compose", "--fabric", "missing.md", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout).error).toMatchObject({ code: "unreadable_input", file: "missing.md" });
});
