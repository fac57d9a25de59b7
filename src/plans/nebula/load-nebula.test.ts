import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadNebula } from "./load-nebula.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plimsoll-nebula-"));
  write("nebula.toml", '[nebula]\nname = "plan"\n');
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string | Buffer): void {
  writeFileSync(join(folder, name), content);
}

/** A phase file; further lines of its front matter begin on line 4. */
function phase(id: string, ...lines: string[]): void {
  write(
    `${id}.md`,
    ["+++", `id = "${id}"`, `title = "Do ${id}"`, ...lines, "+++", "", `The body of ${id}.`].join("\n"),
  );
}

async function problems(): Promise<string[]> {
  const { problems: found } = await loadNebula(folder);
  return found.map(
    ({ file, line, severity, rule, message }) => `${basename(file)}:${line}: ${severity} ${rule}: ${message}`,
  );
}

describe("a nebula without errors", () => {
  test("has its values from the phase, else the nebula, else the defaults", async () => {
    write(
      "nebula.toml",
      `[nebula]
name = "plan"
description = "All of it"
[defaults]
type = "task"
priority = 3
labels = ["x"]
assignee = "ann"
[execution]
max_workers = 4
max_context_tokens = 0
gate = "review"
model = "large"
[context]
working_dir = "sub"
goals = ["one"]
constraints = ["two"]
`,
    );
    phase(
      "a",
      'gate = "trust"',
      'model = "small"',
      'type = "bug"',
      "priority = 1",
      'labels = ["y"]',
      'assignee = "bob"',
    );
    phase(
      "b",
      'depends_on = ["a", "a"]',
      'gate = ""',
      'model = ""',
      "priority = 0",
      "labels = []",
      'scope = ["src/**"]',
      "allow_scope_overlap = true",
    );
    const { nebula, phases, problems: none } = await loadNebula(folder);
    expect([phases, none]).toEqual([2, []]);
    expect(nebula).toEqual({
      directory: folder,
      name: "plan",
      description: "All of it",
      goals: ["one"],
      constraints: ["two"],
      workingDirectory: "sub",
      execution: { maxWorkers: 4, maxContextTokens: 0, gate: "review", model: "large" },
      phases: [
        {
          id: "a",
          title: "Do a",
          file: join(folder, "a.md"),
          body: "The body of a.",
          dependsOn: [],
          scope: [],
          gate: "trust",
          model: "small",
          type: "bug",
          priority: 1,
          labels: ["y"],
          assignee: "bob",
        },
        {
          id: "b",
          title: "Do b",
          file: join(folder, "b.md"),
          body: "The body of b.",
          dependsOn: ["a"],
          scope: ["src/**"],
          allowScopeOverlap: true,
          gate: "review",
          model: "large",
          type: "task",
          priority: 3,
          labels: ["x"],
          assignee: "ann",
        },
      ],
    });
  });

  test("needs no more than a name, ids and titles", async () => {
    phase("a");
    const { nebula } = await loadNebula(folder);
    expect(nebula?.execution).toEqual({
      maxWorkers: undefined,
      maxContextTokens: undefined,
      gate: undefined,
      model: undefined,
    });
    expect(nebula?.phases).toMatchObject([{ gate: "trust", priority: 2, labels: [], dependsOn: [] }]);
  });

  test("takes what other phases block as dependencies", async () => {
    phase("a", 'blocks = ["c"]');
    phase("b");
    phase("c", 'depends_on = ["b"]');
    expect((await loadNebula(folder)).nebula?.phases.at(-1)?.dependsOn).toEqual(["b", "a"]);
  });

  test("may have keys that are carried without an effect", async () => {
    write(
      "nebula.toml",
      `[nebula]
name = "plan"
[execution]
max_workers = 0
max_review_cycles = 0
max_budget_usd = 12.5
hail_timeout = "5m"
auto_decompose = true
healing = false
healing_max_attempts = 1
healing_budget_reserve = 1
[execution.routing]
enabled = true
[[execution.routing.tiers]]
name = "fast"
model = "m"
max_score = 1.0
[context]
repo = "r"
[dependencies]
requires_beads = []
requires_nebulae = []
`,
    );
    phase(
      "a",
      "max_review_cycles = 5",
      "max_budget_usd = 10.0",
      "decomposed = true",
      "auto_decompose = false",
      "blocks = []",
    );
    expect(await problems()).toEqual([
      "nebula.toml:7: warning not-enforced: without effect here: execution.hail_timeout, execution.routing, execution.auto_decompose, execution.healing, execution.healing_max_attempts, execution.healing_budget_reserve",
    ]);
  });

  test("counts as phases what is a file or a link to one; README.md only with front matter, dot files never", async () => {
    phase("a");
    write("linked.txt", '+++\nid = "linked"\ntitle = "t"\n+++\n');
    symlinkSync("linked.txt", join(folder, "link.md"));
    write("README.md", "# What this is\n");
    write("notes.txt", "no phase");
    write(".draft.md", "no phase");
    const { nebula } = await loadNebula(folder);
    expect(nebula?.phases.map(({ id }) => id)).toEqual(["a", "linked"]);
    write("README.md", '\n+++\nid = "readme"\ntitle = "t"\n+++\n');
    rmSync(join(folder, "link.md"));
    expect((await loadNebula(folder)).nebula?.phases.map(({ id }) => id)).toEqual(["readme", "a"]);
  });
});

describe("what cannot be read at all", () => {
  test.each([
    ["nowhere", "no such file or directory"],
    ["a.md", "a part of its path is not a directory"],
  ])("%s", async (name, reason) => {
    phase("a");
    await expect(loadNebula(join(folder, name))).rejects.toMatchObject({
      code: "unreadable_input",
      message: reason,
      file: join(folder, name, "nebula.toml"),
    });
  });
});

describe("every mistake has its file and line", () => {
  test("in the manifest", async () => {
    phase("a");
    write(
      "nebula.toml",
      '[nebula]\nnmae = "x"\n[execution]\nmax_context_tokens = -1\ngate = "reviews"\nmax_workers = "ten"\n[contxt]\n',
    );
    expect(await problems()).toEqual([
      'nebula.toml:1: error missing-key: "nebula.name" is missing',
      'nebula.toml:2: warning unknown-key: unknown key "nebula.nmae". Did you mean "name"?',
      'nebula.toml:4: error invalid-value: "execution.max_context_tokens" must be at least 0, not -1',
      'nebula.toml:5: error invalid-value: "execution.gate" must be one of trust, review, approve, watch, not "reviews". Did you mean "review"?',
      'nebula.toml:6: error invalid-value: "execution.max_workers" must be a whole number, not "ten"',
      'nebula.toml:7: warning unknown-key: unknown key "contxt". Did you mean "context"?',
    ]);
  });

  test.each(["-1", "1.5", '"ten"', "true", "[1]", "9007199254740993", "nan"])(
    "max_context_tokens = %s is an error",
    async (value) => {
      phase("a");
      write("nebula.toml", `[nebula]\nname = "x"\n\n[execution]\nmax_context_tokens = ${value}\n`);
      expect(await problems()).toEqual([
        expect.stringMatching(/^nebula\.toml:5: error invalid-value: "execution\.max_context_tokens" must be /),
      ]);
    },
  );

  test("without a section for its name", async () => {
    phase("a");
    write("nebula.toml", "");
    expect(await problems()).toEqual(['nebula.toml:1: error missing-key: "nebula.name" is missing']);
  });

  test("in front matter: none, not closed, malformed", async () => {
    write("a.md", "\n# Only prose\n");
    write("b.md", '+++\nid = "b"\n');
    write("c.md", '\n\n+++\nid = "c"\ntitle = oops\n+++\n');
    write("nebula.toml", "[nebula]\nname = \n");
    expect(await problems()).toEqual([
      expect.stringMatching(/^a\.md:2: error missing-front-matter: /),
      expect.stringMatching(/^b\.md:1: error unclosed-front-matter: /),
      'c.md:5: error malformed-toml: malformed TOML: invalid value. Texts need quotes: "…"',
      "nebula.toml:2: error malformed-toml: malformed TOML: invalid value: the value is missing. Write one, or leave the key out",
    ]);
  });

  test("in front matter as YAML would have it", async () => {
    write("a.md", "---\nid: a\n---\n");
    write("b.md", "+++\nid: b\n+++\n");
    expect(await problems()).toEqual([
      expect.stringMatching(/^a\.md:1: error missing-front-matter: .* TOML between .* YAML$/),
      expect.stringMatching(/^b\.md:2: error malformed-toml: .*\. Write key = "value"$/),
    ]);
  });

  test("in lists without an effect as a warning", async () => {
    phase("a");
    write(
      "nebula.toml",
      '[nebula]\nname = "x"\n[dependencies]\nrequires_beads = ["b", ""]\nrequires_nebulae = [" "]\n',
    );
    expect(await problems()).toEqual([
      'nebula.toml:4: warning invalid-value: "dependencies.requires_beads[1]" is empty',
      expect.stringMatching(/^nebula\.toml:4: warning not-enforced: "dependencies\.requires_beads\[0\]" has no effect/),
      'nebula.toml:5: warning invalid-value: "dependencies.requires_nebulae[0]" is empty',
    ]);
    expect((await loadNebula(folder)).nebula?.name).toBe("x");
  });

  test("in requirements that nothing enforces as a warning", async () => {
    phase("a");
    write("nebula.toml", '[nebula]\nname = "x"\n\n[dependencies]\nrequires_beads = []\nrequires_nebulae = ["base"]\n');
    expect(await problems()).toEqual([
      'nebula.toml:6: warning not-enforced: "dependencies.requires_nebulae[0]" has no effect: apply does not check whether "base" has completed',
    ]);
    expect((await loadNebula(folder)).nebula?.name).toBe("x");
  });

  test.each(["abc", "5", "5 m", "5d", "m", "1h abc"])("in a time to wait, such as %j", async (time) => {
    phase("a");
    write("nebula.toml", `[nebula]\nname = "x"\n[execution]\ncheck_timeout = "${time}"\n`);
    expect(await problems()).toEqual([
      expect.stringMatching(
        /^nebula\.toml:4: error invalid-value: "execution\.check_timeout" must be a time such as "90s", /,
      ),
    ]);
  });

  test.each(["0", "5m", "1h30m", "1.5h", "250ms", ""])("not in the time to wait %j", async (time) => {
    phase("a");
    write("nebula.toml", `[nebula]\nname = "x"\n[execution]\ncheck_timeout = "${time}"\n`);
    expect(await problems()).toEqual([]);
  });

  test("in the keys of a phase, all of them at once", async () => {
    write(
      "a.md",
      '+++\ntitel = "x"\npriority = "high"\ndepends_on = [\n  "b",\n  3,\n]\nscope = "src"\nallow_scope_overlap = 1\nmax_budget_usd = -2\n[extra]\nx = 1\n+++\n',
    );
    expect(await problems()).toEqual([
      'a.md:2: error missing-key: "id" is missing',
      'a.md:2: error missing-key: "title" is missing',
      'a.md:2: warning unknown-key: unknown key "titel". Did you mean "title"?',
      'a.md:3: error invalid-value: "priority" must be a whole number, not "high"',
      'a.md:6: error invalid-value: "depends_on[1]" must be a text, not 3',
      'a.md:8: error invalid-value: "scope" must be a list, not "src"',
      'a.md:9: error invalid-value: "allow_scope_overlap" must be true or false, not 1',
      'a.md:10: error invalid-value: "max_budget_usd" must be at least 0, not -2',
      expect.stringMatching(/^a\.md:11: warning unknown-key: unknown key "extra"/),
    ]);
  });

  test("for dates and for numbers that are too large", async () => {
    write(
      "a.md",
      '+++\nid = "a"\ntitle = 2026-01-02\nlabels = [2026-01-02T03:04:05Z]\npriority = 9007199254740993\nmodel = 9007199254740993\n+++\n',
    );
    expect(await problems()).toEqual([
      'a.md:3: error invalid-value: "title" must be a text, not a date',
      'a.md:4: error invalid-value: "labels[0]" must be a text, not a date',
      'a.md:5: error invalid-value: "priority" must be at most 9007199254740991, not 9007199254740993',
      'a.md:6: error invalid-value: "model" must be a text, not 9007199254740993',
    ]);
  });

  test.each(["a b", "../a", "ä", "-a", "a/b", ".a", "a".repeat(101)])(
    "for the id %j, which cannot name a file",
    async (id) => {
      write("a.md", `+++\ntitle = "t"\nid = ${JSON.stringify(id)}\n+++\n`);
      expect(await problems()).toEqual([expect.stringMatching(/^a\.md:3: error invalid-id: /)]);
    },
  );

  test.each(["a", "A.b_c-1", "0", "a".repeat(100)])("but not for the id %s", async (id) => {
    write("a.md", `+++\ntitle = "t"\nid = "${id}"\n+++\n`);
    expect(await problems()).toEqual([]);
  });

  test("for unreadable files: folders, bytes, broken links", async () => {
    phase("a");
    mkdirSync(join(folder, "folder.md"));
    write("bytes.md", Buffer.from('+++\nid = "x"\ntitle = "\xff"\n+++\n', "latin1"));
    write("binary.md", Buffer.from([0, 1, 2]));
    symlinkSync(join(folder, "gone"), join(folder, "link.md"));
    expect(await problems()).toEqual([
      "binary.md:1: error unreadable-file: cannot be read: binary file",
      "bytes.md:1: error unreadable-file: cannot be read: invalid UTF-8 in line 3: convert it first",
      "folder.md:1: warning unreadable-file: is a directory, so it is left out: phases are files",
      "link.md:1: error unreadable-file: cannot be read: no such file or directory",
    ]);
  });

  test.skipIf(process.getuid?.() === 0)("for a file that may not be read", async () => {
    phase("a");
    chmodSync(join(folder, "a.md"), 0);
    expect(await problems()).toEqual(["a.md:1: error unreadable-file: cannot be read: no permission to read it"]);
  });

  test.each([
    ["keys within keys by dots", `${"a.".repeat(100_000)}a = 1`, "nested too deeply"],
    ["keys within keys by a header", `[${"a.".repeat(100)}a]`, "nested too deeply"],
    ["lists within lists", `a = ${"[".repeat(300_000)}`, ""],
    ["65 lists", `a = ${"[".repeat(65)}${"]".repeat(65)}`, ""],
    ["tables within tables", `a = ${"{a=".repeat(300_000)}`, ""],
    ["more than 256 KB", `a = "${"x".repeat(256 * 1024)}"`, "more than 256 KB are not read"],
  ])("for %s, with only the file", async (_, toml, message) => {
    phase("a", toml);
    phase("b");
    const found = await problems();
    expect(found).toEqual([expect.stringMatching(/^a\.md:\d: error malformed-toml: malformed TOML: /)]);
    expect(found[0]).toContain(message);
    expect(found[0]!.length).toBeLessThan(300);
  });

  test("and a nebula without phases is only a warning", async () => {
    expect(await problems()).toEqual([expect.stringMatching(/^nebula\.toml:1: warning no-phases: /)]);
    expect((await loadNebula(folder)).nebula?.phases).toEqual([]);
  });
});
