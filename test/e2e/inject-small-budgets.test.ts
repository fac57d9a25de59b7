/** Small budgets: pack content comes before the parts that Plimsoll adds, and a file export does not depend on them. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

interface Row {
  readonly adapter: string;
  readonly packs: readonly string[];
  readonly dropped: readonly { readonly id: string; readonly reason: string }[];
  readonly leftOut: readonly string[];
  readonly renderedBytes: number;
  readonly status: string;
}

async function rows(...args: string[]): Promise<Record<string, Row>> {
  const { stdout, stderr, code } = await project.call(["inject", "--json", ...args]);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return Object.fromEntries((JSON.parse(stdout) as Row[]).map((row) => [row.adapter, row]));
}

interface PackOptions {
  readonly weight?: number;
  readonly base?: boolean;
  /** How many lines of about 90 bytes the core and each other tier have. */
  readonly lines: { readonly core: number; readonly detail: number; readonly extended: number };
  readonly changelog?: number;
}

/** Writes a pack with every optional file, as rich as the packs of a real team: preamble, constraints, changelog,
 *  samples, known errors and courses. */
function richPack(id: string, { weight = 50, base = false, lines, changelog = 3 }: PackOptions): void {
  const at = (name: string) => `content/packs/${id}/${name}`;
  const list = (from: number, make: (index: number) => string) => Array.from({ length: from }, (_, i) => make(i));
  const rule = (tier: string) => (index: number) =>
    `- **${id} ${tier} rule ${index}**: prefer the released interface over an internal function of ${id}.`;
  const news = list(changelog, (i) => `  - "${id} 2026.${i}: a release note of one line about a new option"`);
  project.put(
    at("pack.yaml"),
    [
      ...[`id: ${id}`, `name: ${id} packs`, "description: Rules of one subject", `tags: [${id}]`, `weight: ${weight}`],
      ...(base ? ["base: true"] : []),
      ...["versions:", `  "@scope/${id}": 9.4.1`, "changelog:", ...news, ""],
    ].join("\n"),
  );
  if (base) project.put(at("preamble.md"), "You assist a developer. Ask the command for facts before you answer.\n");
  project.put(at("constraints.md"), `- Never edit generated files of ${id}.\n`);
  project.put(
    at("context.md"),
    [
      ...[`## Subject ${id}`, "", ...list(lines.core, rule("core")), ""],
      ...["<!-- verbosity:detail -->", "### Details", "", ...list(lines.detail, rule("detail")), ""],
      ...["<!-- verbosity:extended -->", "### Reference", "", ...list(lines.extended, rule("extended")), ""],
    ].join("\n"),
  );
  const sample = (i: number) =>
    `- id: ${id}-${i}\n  label: Sample ${i}\n  url: https://example.com/${id}/${i}\n  inject: true`;
  project.put(at("samples.yaml"), `${list(4, sample).join("\n")}\n`);
  const course = (i: number) =>
    `  - slug: ${id}-${i}\n    title: Course ${i}\n    url: https://example.com/${id}\n    featured: true`;
  project.put(at("learning.yaml"), `journeys:\n${list(4, course).join("\n")}\n`);
  const error = (i: number) =>
    `- id: ${id}-${i}\n  pattern: E${i} of ${id}\n  cause: a missing binding\n  fix: bind it`;
  project.put(at("known_errors.yaml"), `${list(6, error).join("\n")}\n`);
}

/** The sizes of a real content repository: the core of its base pack alone has about 4,250 bytes, which is more than
 *  ChatGPT's budget. */
function realSizes(): void {
  richPack("base", { base: true, weight: 100, lines: { core: 45, detail: 14, extended: 0 }, changelog: 2 });
  richPack("cap", { weight: 90, lines: { core: 5, detail: 6, extended: 200 }, changelog: 9 });
  richPack("btp-core", { weight: 80, lines: { core: 9, detail: 4, extended: 0 } });
  richPack("abap", { weight: 70, lines: { core: 12, detail: 0, extended: 0 } });
}

const chatgpt = ["--global", "--content", "content", "--tool", "chatgpt"];
const exported = "plimsoll-chatgpt-context.md";

describe("ChatGPT's budget of 1,400 bytes", () => {
  test("gets the core of a pack, although the base pack alone is larger", async () => {
    realSizes();
    const { chatgpt: row } = await rows(...chatgpt);
    expect(row?.packs).toContain("cap");
    expect(row?.dropped.map(({ id }) => id)).toContain("base");
    expect(row?.renderedBytes).toBeLessThanOrEqual(1400);
    expect(row?.status).toMatch(/^OK/);
    const { stdout } = await project.call(["inject", ...chatgpt]);
    expect(stdout).toContain("cap core rule 4");
    expect(stdout).not.toContain("base core rule");
  });

  test("keeps pack content and leaves out what's new, the profile and the runtime section", async () => {
    richPack("cap", { lines: { core: 11, detail: 3, extended: 3 }, changelog: 3 });
    const { chatgpt: row } = await rows(...chatgpt);
    expect(row?.packs).toEqual(["cap"]);
    expect(row?.leftOut).toContain("What's New");
    expect(row?.renderedBytes).toBeLessThanOrEqual(1400);
  });

  test("gets the export file, although the clipboard has no room for any pack", async () => {
    richPack("cap", { lines: { core: 40, detail: 3, extended: 3 } });
    const { code, stderr } = await project.call(["inject", ...chatgpt]);
    expect(code).toBe(0);
    expect(stderr).toContain("budget too small to include any pack content");
    expect(readFileSync(join(project.home, exported), "utf8")).toContain("cap extended rule 2");
  });

  test("does not write the export file in a dry run", async () => {
    richPack("cap", { lines: { core: 40, detail: 3, extended: 3 } });
    await project.call(["inject", "--dry-run", ...chatgpt]);
    expect(existsSync(join(project.home, exported))).toBe(false);
  });
});

describe("a small budget in a project", () => {
  const call = ["--content", "content", "--tool", "claude-code"];

  test("never costs a pack for the parts that Plimsoll adds", async () => {
    for (const weight of [90, 80, 70])
      richPack(`p${weight}`, { weight, lines: { core: 9, detail: 0, extended: 0 }, changelog: 3 });
    const all = (await rows("--dry-run", ...call))["claude-code"];
    const bare = all!.renderedBytes - 1_500;
    const { "claude-code": row } = await rows("--dry-run", ...call, "--max-bytes", String(bare));
    expect(row?.packs).toEqual(["p90", "p80", "p70"]);
    expect(row?.leftOut.length).toBeGreaterThan(0);
  });

  test("fills the room that packs leave with those parts, and says what it left out", async () => {
    for (const weight of [90, 80]) richPack(`p${weight}`, { weight, lines: { core: 30, detail: 0, extended: 0 } });
    const { stdout, stderr } = await project.call(["inject", "--dry-run", ...call, "--max-bytes", "4600"]);
    expect(stdout).toContain("**Profile:**");
    expect(stdout).toContain("## Runtime Context");
    expect(stdout).toContain("p90 core rule 29");
    expect(stderr).toContain("claude-code: dropped p80 (budget 4,600 bytes)");
  });

  test("keeps the notes of the project as long as a pack fits beside them", async () => {
    richPack("cap", { lines: { core: 5, detail: 2, extended: 2 } });
    await project.call(["notes", "add", "The release branch is frozen."]);
    const small = await project.call(["inject", "--dry-run", ...call, "--max-bytes", "900"]);
    expect(small.stdout).toContain("The release branch is frozen.");
    const smaller = await project.call(["inject", "--dry-run", ...call, "--max-bytes", "690"]);
    expect(smaller.stdout).toContain("cap core rule 4");
    expect(smaller.stdout).not.toContain("frozen");
    expect(smaller.stderr).toContain("left out the notes");
  });
});
