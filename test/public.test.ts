/** What users import is short, documented, and its examples compile. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
// @ts-expect-error: a script has no types of its own
import { listPublicFiles, readPublicApi } from "../scripts/public-api.mjs";

interface PublicName {
  readonly name: string;
  readonly kind: "function" | "class" | "constant" | "interface" | "type";
  readonly doc: { readonly text: string; readonly examples: readonly string[] };
  readonly members: readonly { readonly name: string; readonly doc: string | undefined }[];
}
interface Door {
  /** The import path, such as `plimsoll/history`. */
  readonly path: string;
  readonly file: string;
  readonly summary: PublicName["doc"];
  readonly names: readonly PublicName[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
const doors: readonly Door[] = readPublicApi();
const names = doors.flatMap(({ path, names: found }) => found.map((each) => ({ ...each, path })));
const values = names.filter(({ kind }) => kind !== "interface" && kind !== "type");

test("the package has at most 150 public names", () => {
  expect(new Set(names.map(({ name }) => name)).size).toBeLessThanOrEqual(150);
});

test("every file in src/public is an import path of the package", () => {
  expect(doors.map(({ file }) => file).sort()).toEqual(listPublicFiles().sort());
});

test("every import path and every public name says what it is", () => {
  expect(doors.filter(({ summary }) => summary.text.length < 20).map(({ path }) => path)).toEqual([]);
  expect(names.filter(({ doc }) => doc.text === "").map(({ path, name }) => `${path} ${name}`)).toEqual([]);
});

test("the reference pages in docs/api are current", () => {
  const { stderr } = spawnSync(process.execPath, ["scripts/write-api.mjs", "--check"], { cwd: root, encoding: "utf8" });
  expect(stderr).toBe("");
});

test("every public value has an example", () => {
  const without = values.filter(({ doc }) => doc.examples.length === 0);
  expect(without.map(({ path, name }) => `${path} ${name}`)).toEqual([]);
});

test("every field of public options has a doc comment", () => {
  const options = names.filter(({ name, kind }) => kind === "interface" && /(Options|Limits)$/.test(name));
  expect(options.length).toBeGreaterThan(10);
  const silent = options.flatMap(({ name, members }) =>
    members.filter(({ doc }) => !doc?.startsWith("*")).map((member) => `${name}.${member.name}`),
  );
  expect([...new Set(silent)]).toEqual([]);
});

const examples = values.flatMap(({ name, doc }) => doc.examples.map((text) => ({ name, text })));
/** What the compiler says about each folder of `programs`. It runs once for all of them. */
const errorsIn = {
  ...{ examples: [] as string[], wrong: [] as string[], sessions: [] as string[], requests: [] as string[] },
};
beforeAll(() => {
  const groups = Object.entries({
    examples: Object.fromEntries(examples.map(({ name, text }, index) => [`${name}-${index}.ts`, text])),
    wrong: wrongExample(),
    sessions: sessionPrograms(),
    requests: requestPrograms(),
  });
  const files = groups.flatMap(([folder, programs]) =>
    Object.entries(programs).map(([name, text]) => [`${folder}/${name}`, text] as const),
  );
  const errors = typeErrors(Object.fromEntries(files));
  for (const error of errors) {
    const group = Object.entries(errorsIn).find(([folder]) => error.includes(`src/${folder}/`));
    (group?.[1] ?? errorsIn.examples).push(error);
  }
}, 60_000);

test("the examples in doc comments compile against the public names", () => {
  expect(examples.length).toBeGreaterThan(30);
  expect(errorsIn.examples).toEqual([]);
});

function wrongExample(): Record<string, string> {
  return { "typo.ts": 'import { createCounter } from "plimsoll";\nawait createCounter("estimat:typo");' };
}

test("an example that is wrong does not compile", () => {
  expect(errorsIn.wrong.join("\n")).toContain("estimat:typo");
});

function sessionPrograms(): Record<string, string> {
  const open = (tools: string) => `import { type BudgetedTool, createSession } from "plimsoll/session";
    import { createTools } from "plimsoll/tools";
    declare const list: BudgetedTool<"list">;
    declare const loaded: BudgetedTool[];
    const session = await createSession({ tools: ${tools}, now: Date.now });`;
  const call = (name: string) => `await session.call("${name}", {});`;
  return {
    "tuple.ts": `${open("[list]")} ${call("list")} ${call("tuple_typo")}`,
    "tools.ts": `${open('createTools({ root: "." })')} ${call("read_file")} ${call("tools_typo")}`,
    "both.ts": `${open('[...createTools({ root: "." }), list]')} ${call("list")} ${call("both_typo")}`,
    "dynamic.ts": `${open("loaded")} ${call("anything")}`,
    "none.ts": `${open("undefined")} ${call("anything")}`,
  };
}

test("a session takes any name, because a model may invent one", () => {
  expect(errorsIn.sessions).toEqual([]);
});

function requestPrograms(): Record<string, string> {
  const client = (name: string, from: string) => `import ${name} from "${from}";`;
  const wrap = (options: string, name: string) => `withContextBudget(new ${name}(), { ${options} });`;
  const byUser = "sessionIdOf: (r) => r.metadata?.user_id";
  return {
    "anthropic.ts": `${client("Anthropic", "@anthropic-ai/sdk")}
      import { type AnthropicOptions, withContextBudget } from "plimsoll/anthropic";
      const client = ${wrap(byUser, "Anthropic")}
      const total: number = client.plimsoll.summary().calls;
      const options: AnthropicOptions = { ${byUser} };
      withContextBudget(client, options).messages.create({ model: "m", max_tokens: total, messages: [] });
      ${wrap("sessionIdOf: (r) => r.anthropic_typo", "Anthropic")}`,
    "openai.ts": `${client("OpenAI", "openai")}
      import { withContextBudget } from "plimsoll/openai";
      ${wrap(byUser, "OpenAI")}
      ${wrap("sessionIdOf: (r) => r.openai_typo", "OpenAI")}`,
    "ai-sdk.ts": `import { contextBudgetMiddleware } from "plimsoll/ai-sdk";
      contextBudgetMiddleware({ sessionIdOf: (r) => r.headers?.["x-session"] });
      contextBudgetMiddleware({ sessionIdOf: (r) => r.sdk_typo });`,
    "fetch.ts": `${client("OpenAI", "openai")}
      import { budgetedFetch } from "plimsoll/fetch";
      const budgeted = budgetedFetch(fetch, { ${byUser} });
      new OpenAI({ fetch: budgeted });
      budgeted.plimsoll.summary().breaks.fetch_typo;`,
    "other.ts": `import { withContextBudget } from "plimsoll/openai";
      const other = { post: (path: string, options?: object) => [path, options] };
      withContextBudget(other, { sessionIdOf: (r) => String(r.whatever) });`,
  };
}

test("callbacks get requests in the types of the SDK whose client is wrapped", () => {
  const named = errorsIn.requests.map((error) => /'(\w+_typo)'/.exec(error)?.[1]);
  expect(named.sort()).toEqual(["anthropic_typo", "fetch_typo", "openai_typo", "sdk_typo"]);
});

/** The errors of the compiler, each with its file and its further lines. Each file is a module of a user of the package. */
function typeErrors(files: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-examples-"));
  try {
    // Examples may import the SDKs that this project has installed.
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, "src", name)), { recursive: true });
      writeFileSync(join(folder, "src", name), `${text}\nexport {};\n`);
    }
    // The declarations that users get. With the sources the compiler would check all of them once more.
    const declared = (file: string) => join(root, file.replace(/^src\/(.*)\.ts$/, "dist/$1.d.ts"));
    const paths = Object.fromEntries(doors.map(({ path, file }) => [path, [declared(file)]]));
    const compilerOptions = {
      ...{ target: "es2023", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true },
      ...{ allowImportingTsExtensions: true, exactOptionalPropertyTypes: false },
      typeRoots: [join(root, "node_modules/@types")],
      types: ["node"],
      paths,
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { encoding: "utf8" });
    // The further lines of an error are indented.
    return stdout
      .trim()
      .split(/\n(?! )/)
      .filter((error) => error !== "");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
