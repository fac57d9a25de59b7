/** What stands around the code: workflows, templates and the package's description. They name one repository and commands that exist. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, { readonly permissions?: object; readonly steps: readonly Step[] }>>;
}

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(read("package.json"));
const repository: string = manifest.repository.url.replace(/^git\+|\.git$/g, "");
const github = readdirSync(join(root, ".github"), { recursive: true, encoding: "utf8" })
  .map((path) => join(".github", path))
  .filter((path) => /\.(yml|md)$/.test(path));
const action: { readonly runs: { readonly steps: readonly Step[] } } = parse(read(".github/actions/set-up/action.yml"));
const workflows: Readonly<Record<string, Workflow>> = Object.fromEntries(
  ["ci", "release"].map((name) => [name, parse(read(`.github/workflows/${name}.yml`))]),
);
const steps = [...Object.values(workflows).flatMap(({ jobs }) => Object.values(jobs)), action.runs].flatMap(
  (job) => job.steps,
);

test("every file names the repository that package.json names", () => {
  expect(repository).toMatch(/^https:\/\/github\.com\/[\w-]+\/plimsoll$/);
  const others = ["package.json", "CODE_OF_CONDUCT.md", "SECURITY.md", "README.md", "CONTRIBUTING.md"];
  const files = [...github, ...others.filter((file) => existsSync(join(root, file)))];
  const addresses = files.flatMap((file) =>
    [...read(file).matchAll(/https:\/\/github\.com\/[\w.-]+\/plimsoll\b/g)].map(([address]) => [file, address]),
  );
  expect(addresses.filter(([, address]) => address !== repository)).toEqual([]);
  const named = new Set(addresses.map(([file]) => file));
  for (const file of ["package.json", "CODE_OF_CONDUCT.md", join(".github", "ISSUE_TEMPLATE", "config.yml")]) {
    expect(named).toContain(file);
  }
  expect(manifest.homepage).toBe(`${repository}#readme`);
  expect(manifest.bugs).toBe(`${repository}/issues`);
});

test("security reports go to GitHub's private form", () => {
  const { contact_links } = parse(read(".github/ISSUE_TEMPLATE/config.yml"));
  expect(contact_links.map(({ url }: { url: string }) => url)).toEqual([`${repository}/security/advisories/new`]);
});

test("workflows may only read the repository, and only publishing may ask for an identity", () => {
  for (const { permissions } of Object.values(workflows)) expect(permissions).toEqual({ contents: "read" });
  const jobs = Object.values(workflows).flatMap((workflow) => Object.entries(workflow.jobs));
  const asking = jobs.filter(([, job]) => job.permissions !== undefined);
  expect(asking.map(([name, job]) => [name, job.permissions])).toEqual([
    ["publish", { contents: "read", "id-token": "write" }],
  ]);
});

test("workflows use actions of GitHub by their major version, or our own", () => {
  const used = steps.flatMap(({ uses }) => uses ?? []);
  expect(used.filter((name) => !/^actions\/[\w-]+@v\d+$|^\.\/\.github\/actions\/set-up$/.test(name))).toEqual([]);
});

test("workflows run scripts that package.json has", () => {
  const commands = steps.flatMap(({ run }) => run ?? []).join("\n");
  const names = [...commands.matchAll(/\bnpm (?:run )?(test\b[\w:]*|(?<=run )[\w:]+)/g)].map(([, name = ""]) => name);
  expect(names).toContain("test:deep");
  expect(names.filter((name) => manifest.scripts[name] === undefined)).toEqual([]);
});

test.skipIf(process.platform === "win32")("a release whose tag is not the version stops", () => {
  const check = workflows.release?.jobs.publish?.steps.find(({ run }) => run?.includes("GITHUB_REF_NAME"))?.run ?? "";
  const statusOf = (tag: string) =>
    spawnSync("bash", ["-e", "-c", check], { cwd: root, env: { ...process.env, GITHUB_REF_NAME: tag } }).status;
  expect([statusOf(`v${manifest.version}`), statusOf("v99.0.0"), statusOf(manifest.version)]).toEqual([0, 1, 1]);
});

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
