import { basename, join, relative, resolve } from "node:path";
import {
  addToFabric,
  emptyFabric,
  type Fabric,
  type FabricKind,
  type FabricReport,
  type FabricState,
  type NoteKind,
  noteKinds,
  type Reporter,
  renderFabric,
  resolveEntry,
} from "../../compose/index.ts";
import { ContextError } from "../../errors.ts";
import { fabricOf, type Nebula, openNebulaRecord, person, readNebulaName, storedKey } from "../../nebula/index.ts";
import { didYouMean, printable } from "../../text/index.ts";
import { exists } from "../../workspace/index.ts";
import { type Call, type Command, type CommandGroup, type CommandResult, defineCommand } from "../command.ts";
import { lookInStore, storeOptions, storePath, withStore } from "../store-file.ts";

const fabricOptions = {
  nebula: {
    value: "DIR",
    summary: "folder of the nebula (default: PLIMSOLL_NEBULA, which is set inside a running phase)",
  },
  ...storeOptions,
} as const;

export const fabricCommand: CommandGroup = {
  subcommands: [
    {
      name: "show",
      summary: "show what the phases of a nebula reported to each other",
      load: async () => showCommand,
    },
    {
      name: "add",
      summary: "add an entanglement, a claim, a discovery or a note",
      load: async () => addGroup,
    },
    {
      name: "resolve",
      summary: "mark a discovery as resolved, or remove another entry",
      load: async () => resolveCommand,
    },
  ],
  examples: [
    { line: "plimsoll fabric show --nebula plan", meaning: "what the phases of ./plan reported" },
    {
      line: 'plimsoll fabric add discovery "no schema yet" --affects page',
      meaning: "inside a running phase",
    },
    { line: "plimsoll fabric resolve d2 --nebula plan", meaning: "mark a discovery as resolved" },
  ],
};

const addGroup: CommandGroup = {
  subcommands: [
    {
      name: "entanglement",
      summary: "add something that others can build on: a function, a type, an endpoint",
      load: async () => addEntanglementCommand,
    },
    {
      name: "claim",
      summary: "claim a path that others should not change for now",
      load: async () => addClaimCommand,
    },
    {
      name: "discovery",
      summary: "report a problem that others must know about until it is resolved",
      load: async () => addDiscoveryCommand,
    },
    {
      name: "note",
      summary: "add a decision, a failure, feedback, or anything else that others should know",
      load: async () => addNoteCommand,
    },
  ],
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside a running phase" },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
};

const addClaimCommand: Command = defineCommand({
  arguments: [{ name: "PATH", summary: "a file, a folder or a glob pattern" }],
  options: fabricOptions,
  details: `Prints the id of the entry. Inside a running phase it goes to stderr, because stdout may be the answer.
Others see a claim until its phase has completed. Nothing enforces it. A phase claims its scope when it starts.`,
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside a running phase" },
    { line: 'plimsoll fabric add claim "docs/**" --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    const [path = ""] = call.arguments;
    return (await openFabric(call)).add("claims", { path });
  },
});

const addDiscoveryCommand: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "the problem, in one line" }],
  options: {
    kind: { value: "KIND", summary: "the kind of problem, in one word (default: blocker)" },
    affects: { value: "ID", summary: "the phase that it blocks, or several with commas" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry. Inside a running phase it goes to stderr, because stdout may be the answer.
Every phase that starts sees all discoveries until "plimsoll fabric resolve ID". A prompt that is too long loses
them last.`,
  examples: [
    {
      line: 'plimsoll fabric add discovery "no schema yet" --affects page',
      meaning: "inside a running phase",
    },
    {
      line: 'plimsoll fabric add discovery "two names" --kind conflict --nebula plan',
      meaning: "as a person",
    },
  ],
  async run(call) {
    const [detail = ""] = call.arguments;
    const { kind = "blocker", affects } = call.options;
    const result = await (await openFabric(call)).add("discoveries", { kind, detail, affects });
    if (affects !== undefined) await noteUnknown(call, affects);
    return result;
  },
});

/** Notes an unknown phase. The phases are known after the first run. */
async function noteUnknown(call: FabricCall, affects: string): Promise<void> {
  const { phases = [] } = (await (await openFabric(call)).read()) ?? {};
  const ids = phases.map(({ id }) => id);
  if (ids.length === 0) return;
  for (const named of affects.split(",").map((each) => each.trim())) {
    if (ids.includes(named)) continue;
    const meant = didYouMean(named, ids);
    const sentence = `"${printable(named)}" is not a phase of this nebula`;
    call.output.note(meant === undefined ? sentence : `${sentence}. ${meant}`);
  }
}

const addEntanglementCommand: Command = defineCommand({
  arguments: [{ name: "SIGNATURE", summary: "how others use it, in one line" }],
  options: {
    package: { value: "NAME", summary: "the package that has it; entanglements are shown by package" },
    kind: { value: "KIND", summary: "the kind, in one word: function, type, endpoint" },
    file: { value: "PATH", summary: "the file that defines it" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry. Inside a running phase it goes to stderr, because stdout may be the answer.
An entry that was reported before keeps its id.`,
  examples: [
    {
      line: 'plimsoll fabric add entanglement "parse(text: string): Ast" --package parser --kind function',
      meaning: "inside a running phase",
    },
    {
      line: 'plimsoll fabric add entanglement "GET /ast" --package api --kind endpoint --nebula plan',
      meaning: "as a person",
    },
  ],
  async run(call) {
    const [signature = ""] = call.arguments;
    const { package: name, kind, file } = call.options;
    const entry = {
      package: needed("package", name),
      kind: needed("kind", kind),
      signature,
      file,
    };
    return (await openFabric(call)).add("entanglements", entry);
  },
});

function needed(option: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new ContextError("usage", `--${option} is missing`, {
    hint: 'See "plimsoll fabric add entanglement --help".',
  });
}

const addNoteCommand: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "what others should know, in one line" }],
  options: {
    kind: { value: "KIND", choices: noteKinds, summary: "the kind of note (default: note)" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry. Inside a running phase it goes to stderr, because stdout may be the answer.
Every phase that starts from now on sees the note.`,
  examples: [
    {
      line: 'plimsoll fabric add note "dates are ISO 8601" --kind decision',
      meaning: "inside a running phase",
    },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    const [text = ""] = call.arguments;
    // parseArguments has checked the choices.
    const kind = (call.options.kind ?? "note") as NoteKind;
    return (await openFabric(call)).add("notes", { kind, text });
  },
});

const showCommand: Command = defineCommand({
  options: fabricOptions,
  details: `Prints the Markdown of the fabric layer, before it is cut to its share of a prompt. It leaves out
claims of completed phases and resolved discoveries; --json has them. The command only reads, so the nebula may be
running.`,
  examples: [
    { line: "plimsoll fabric show --nebula plan", meaning: "what the phases of ./plan reported" },
    {
      line: "plimsoll fabric show --nebula plan | plimsoll compose --fabric -",
      meaning: "the fabric as a prompt contains it",
    },
    { line: "plimsoll fabric show --nebula plan --json | jq .discoveries", meaning: "JSON for programs" },
  ],
  async run(call) {
    const state = (await (await openFabric(call)).read()) ?? nothing;
    const text = renderFabric(state);
    if (text === "") call.output.note("the fabric is empty: no phase has run, and nothing was added");
    return { json: state, text };
  },
});

const nothing: FabricState = { phases: [], entanglements: [], claims: [], discoveries: [], notes: [] };

const resolveCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: 'the id of an entry, from "plimsoll fabric show --json"' }],
  options: fabricOptions,
  details: `Phases no longer see a resolved discovery. If it is reported again, it is a new one. Any other entry is
removed: a claim, a note, an entanglement. Prints the id. Inside a running phase it goes to stderr.`,
  examples: [
    { line: "plimsoll fabric resolve d2", meaning: "inside a running phase" },
    { line: "plimsoll fabric resolve c3 --nebula plan", meaning: "as a person: release a path" },
  ],
  async run(call) {
    const [id = ""] = call.arguments;
    return (await openFabric(call)).resolve(id);
  },
});

// The fabric that a command reads and changes. Inside a phase, nebula and reporter come from the environment.

type FabricCall = Call<{ readonly nebula?: string | undefined; readonly store?: string | undefined }>;

type Reported<Kind extends FabricKind> = NonNullable<FabricReport[Kind]>[number];

/** The fabric of a nebula, as the subcommands of `plimsoll fabric` use it. */
interface OpenFabric {
  /** Returns undefined if nothing was ever written. Does not create a store. */
  read(): Promise<FabricState | undefined>;
  /** Adds one entry and returns its id. An existing entry keeps its id. */
  add<Kind extends FabricKind>(kind: Kind, entry: Reported<Kind>): Promise<CommandResult>;
  /** Resolves a discovery or removes another entry, and returns its id. */
  resolve(id: string): Promise<CommandResult>;
}

async function openFabric(call: FabricCall): Promise<OpenFabric> {
  const directory = await nebulaDirectory(call);
  const nebula = { directory, name: await readNebulaName(directory) };
  return {
    async read() {
      const path = await storePath(call);
      const record = await lookInStore(path, async (store) =>
        openNebulaRecord(store, await storedKey(store, nebula, call.env)).read(),
      );
      return record === undefined ? undefined : fabricOf(record);
    },
    async add(kind, reported) {
      let [id, isNew] = ["", false];
      const fabric = await changeFabric(call, nebula, (before, reporter) => {
        const { fabric: after, ids } = addToFabric(before, { [kind]: [reported] }, reporter);
        [id, isNew] = [ids[kind][0]!, after !== before];
        return after;
      });
      const entry = find(fabric, id);
      if (!isNew) call.output.note(`${reporterOf(entry)} already reported this as ${id}`);
      return idResult(call, { entry, id, note: isNew ? `added ${id}` : undefined });
    },
    async resolve(id) {
      let before: Fabric | undefined;
      const after = await changeFabric(call, nebula, (fabric) => {
        before = fabric;
        return resolveEntry(fabric, id);
      });
      const isNew = after !== before;
      if (!isNew) call.output.note(`${id} was resolved before`);
      // A removed entry exists only in the fabric before the change.
      const entry = find(after, id) ?? find(before, id);
      return idResult(call, { entry, id, note: isNew ? `resolved ${id}` : undefined });
    },
  };
}

async function nebulaDirectory({ options, cwd, env }: FabricCall): Promise<string> {
  const named = options.nebula ?? (env.PLIMSOLL_NEBULA || undefined);
  if (named === undefined) {
    throw new ContextError("usage", "no nebula is named", {
      hint: "Name its folder with --nebula DIR. Inside a running phase it is known.",
    });
  }
  const directory = resolve(cwd, named);
  const manifest = join(directory, "nebula.toml");
  if (await exists(manifest)) return directory;
  throw new ContextError("unreadable_input", "no such file or directory", {
    file: relative(cwd, manifest),
    hint: "A nebula is a folder with nebula.toml and phase files, *.md.",
  });
}

type Change = (fabric: Fabric, reporter: Reporter) => Fabric;

/** Changes the fabric in one step, even if other processes change it too. The reporter is the running phase, or else a
 *  person. Mistakes in the change are usage errors. */
async function changeFabric(
  call: FabricCall,
  nebula: Pick<Nebula, "directory" | "name">,
  change: Change,
): Promise<Fabric> {
  const reporter = { from: call.env.PLIMSOLL_PHASE || person, date: new Date().toISOString().slice(0, 10) };
  const path = await storePath(call);
  // A refused change must not create a store.
  if (!(await exists(path))) checked(() => change(emptyFabric, reporter));
  const { directory } = nebula;
  const record = await withStore(path, async (store) =>
    openNebulaRecord(store, await storedKey(store, nebula, call.env)).change((before) => {
      const fabric = checked(() => change(before.fabric, reporter));
      if (fabric === before.fabric) return before;
      const { name, directory: known, ...rest } = before;
      return { ...rest, name: name || basename(directory), directory: known || directory, fabric };
    }),
  );
  return record.fabric;
}

function checked<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ContextError) || error.code !== "invalid_argument") throw error;
    throw new ContextError("usage", error.message, { hint: error.hint, cause: error });
  }
}

function find(fabric: Fabric | undefined, id: string): object | undefined {
  if (fabric === undefined) return undefined;
  const { entanglements, claims, discoveries, notes } = fabric;
  return [...entanglements, ...claims, ...discoveries, ...notes].find((each) => each.id === id);
}

/** An entanglement may come from another phase. */
function reporterOf(entry: { readonly from?: string; readonly owner?: string } = {}): string {
  return printable(entry.from ?? entry.owner ?? person);
}

interface FoundEntry {
  readonly entry: object | undefined;
  readonly id: string;
  /** The note with the id inside a phase; absent if a note was printed already. */
  readonly note?: string | undefined;
}

/** Returns the id as a result. Inside a phase it is a note, because stdout may be the agent's answer. */
function idResult({ env, output }: FabricCall, { entry, id, note }: FoundEntry): CommandResult {
  if (!env.PLIMSOLL_PHASE) return { json: entry, text: id };
  if (note !== undefined && !output.json) output.note(note);
  return { json: entry, text: "" };
}
