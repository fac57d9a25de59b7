import { usageError } from "../../core/errors.ts";
import { didYouMean, printable } from "../../core/text/index.ts";
import {
  addToFabric,
  type Fabric,
  type FabricKind,
  type FabricReport,
  type NoteKind,
  noteKinds,
  renderFabric,
  resolveEntry,
} from "../../plans/compose/index.ts";
import { changeFabric, readFabric } from "../../plans/nebula/index.ts";
import {
  type Call,
  type Command,
  type CommandGroup,
  type CommandResult,
  defineCommand,
  subcommand,
} from "../command.ts";
import { storeOptions } from "../shared-options.ts";

const fabricOptions = {
  nebula: {
    value: "DIR",
    summary: "folder of the nebula (default: PLIMSOLL_NEBULA, which is set inside a running phase)",
  },
  ...storeOptions,
} as const;

export const fabricCommand: CommandGroup = {
  subcommands: [
    subcommand("show", "show what the phases of a nebula reported to each other", () => showCommand),
    subcommand("add", "add an entanglement, a claim, a discovery or a note", () => addGroup),
    subcommand("resolve", "mark a discovery as resolved, or remove another entry", () => resolveCommand),
  ],
  examples: [
    { line: "plimsoll fabric show --nebula plan", meaning: "what the phases of ./plan reported" },
    { line: 'plimsoll fabric add discovery "no schema yet" --affects page', meaning: "inside a running phase" },
    { line: "plimsoll fabric resolve d2 --nebula plan", meaning: "mark a discovery as resolved" },
  ],
};

const addGroup: CommandGroup = {
  subcommands: [
    subcommand(
      "entanglement",
      "add something that others can build on: a function, a type, an endpoint",
      () => addEntanglement,
    ),
    subcommand("claim", "claim a path that others should not change for now", () => addClaim),
    subcommand("discovery", "report a problem that others must know about until it is resolved", () => addDiscovery),
    subcommand("note", "add a decision, a failure, feedback, or anything else that others should know", () => addNote),
  ],
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside a running phase" },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
};

const aboutId = `Prints the id of the entry. Inside a running phase it goes to stderr, because stdout may be the answer.`;

const addClaim: Command = defineCommand({
  arguments: [{ name: "PATH", summary: "a file, a folder or a glob pattern" }],
  options: fabricOptions,
  details: `${aboutId}
Others see a claim until its phase has completed. Nothing enforces it. A phase claims its scope when it starts.`,
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside a running phase" },
    { line: 'plimsoll fabric add claim "docs/**" --nebula plan', meaning: "as a person" },
  ],
  run: (call) => addEntry(call, "claims", { path: call.arguments[0]! }),
});

const addDiscovery: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "the problem, in one line" }],
  options: {
    kind: { value: "KIND", summary: "the kind of problem, in one word (default: blocker)" },
    affects: { value: "ID", summary: "the phase that it blocks, or several with commas" },
    ...fabricOptions,
  },
  details: `${aboutId}
Every phase that starts sees all discoveries until "plimsoll fabric resolve ID". A prompt that is too long loses
them last.`,
  examples: [
    { line: 'plimsoll fabric add discovery "no schema yet" --affects page', meaning: "inside a running phase" },
    { line: 'plimsoll fabric add discovery "two names" --kind conflict --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    const { kind, affects } = call.options;
    const result = await addEntry(call, "discoveries", { kind, detail: call.arguments[0]!, affects });
    if (affects !== undefined) await noteUnknown(call, affects);
    return result;
  },
});

/** Notes an unknown phase. The phases are known after the first run. */
async function noteUnknown(call: FabricCall, affects: string): Promise<void> {
  const ids = (await readFabric(call)).phases.map(({ id }) => id);
  if (ids.length === 0) return;
  for (const phase of affects.split(",").map((each) => each.trim())) {
    if (ids.includes(phase)) continue;
    const meant = didYouMean(phase, ids);
    const sentence = `"${printable(phase)}" is not a phase of this nebula`;
    call.output.note(meant === undefined ? sentence : `${sentence}. ${meant}`);
  }
}

const addEntanglement: Command = defineCommand({
  arguments: [{ name: "SIGNATURE", summary: "how others use it, in one line" }],
  options: {
    package: { value: "NAME", summary: "the package that has it; entanglements are shown by package" },
    kind: { value: "KIND", summary: "the kind, in one word: function, type, endpoint" },
    file: { value: "PATH", summary: "the file that defines it" },
    ...fabricOptions,
  },
  details: `${aboutId}
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
    const entry = { package: needed("package", name), kind: needed("kind", kind), signature, file };
    return addEntry(call, "entanglements", entry);
  },
});

function needed(option: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw usageError(`--${option} is missing`, 'See "plimsoll fabric add entanglement --help".');
}

const addNote: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "what others should know, in one line" }],
  options: {
    kind: { value: "KIND", choices: noteKinds, summary: "the kind of note (default: note)" },
    ...fabricOptions,
  },
  details: `${aboutId}
Every phase that starts from now on sees the note.`,
  examples: [
    { line: 'plimsoll fabric add note "dates are ISO 8601" --kind decision', meaning: "inside a running phase" },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    // parseArguments has checked the choices.
    const kind = (call.options.kind ?? "note") as NoteKind;
    return addEntry(call, "notes", { kind, text: call.arguments[0]! });
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
    const state = await readFabric(call);
    const text = renderFabric(state);
    if (text === "") call.output.note("the fabric is empty: no phase has run, and nothing was added");
    return { json: state, text };
  },
});

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
    const { before, after } = await changeFabric(call, (fabric) => resolveEntry(fabric, id));
    // A removed entry exists only in the fabric before the change.
    const entry = (find(after, id) ?? find(before, id))!;
    const repeated = after === before ? `${id} was resolved before` : undefined;
    return idResult(call, entry, { verb: "resolved", repeated });
  },
});

type FabricCall = Call<{ readonly nebula?: string | undefined; readonly store?: string | undefined }>;

/** Adds one entry and returns its id. An existing entry keeps its id. */
async function addEntry<Kind extends FabricKind>(
  call: FabricCall,
  kind: Kind,
  reported: NonNullable<FabricReport[Kind]>[number],
): Promise<CommandResult> {
  let id = "";
  const { before, after } = await changeFabric(call, (fabric, reporter) => {
    const added = addToFabric(fabric, { [kind]: [reported] }, reporter);
    id = added.ids[kind][0]!;
    return added.fabric;
  });
  const entry = find(after, id)!;
  // An entanglement may come from another phase.
  const reporter = printable("owner" in entry ? entry.owner : entry.from);
  const repeated = after === before ? `${reporter} already reported this as ${id}` : undefined;
  return idResult(call, entry, { verb: "added", repeated });
}

function find({ entanglements, claims, discoveries, notes }: Fabric, id: string) {
  return [...entanglements, ...claims, ...discoveries, ...notes].find((each) => each.id === id);
}

/** Returns the id as a result. Inside a phase it is a note, because stdout may be the agent's answer. `repeated` says
 *  why the fabric did not change. */
function idResult(
  { env, output }: FabricCall,
  entry: { readonly id: string },
  { verb, repeated }: { readonly verb: string; readonly repeated: string | undefined },
): CommandResult {
  const isInPhase = Boolean(env.PLIMSOLL_PHASE);
  if (repeated !== undefined) output.note(repeated);
  else if (isInPhase && !output.json) output.note(`${verb} ${entry.id}`);
  return { json: entry, text: isInPhase ? "" : entry.id };
}
