import { createCounter } from "../tokens/index.ts";
import { type Checkpoint, checkCheckpoint, loadCheckpoint, saveCheckpoint } from "./checkpoint.ts";
import { createLedgerIndex } from "./ledger.ts";
import { createMessageBudget } from "./message-budget.ts";
import { createPolicy } from "./policies/index.ts";
import { type Recalled, recallFrom, recallFromStore, saveOriginals } from "./recall.ts";
import { type Reduction, type TrimCall, type TrimState, trim } from "./trim.ts";
import { partsOf, type ResponsesRequest, type TrimRequest } from "./trim-request.ts";
import { settleOptions, type TrimmerOptions, type TrimmerSettings } from "./trimmer-options.ts";

/** Keeps the history of one conversation within its model's window, call after call. */
export interface Trimmer {
  /** The request to send. Malformed messages throw with their path; a window that cannot be met comes back as `overflow`, with
   *  the smallest valid request. Decisions stay: the next call renders the same bytes and what is new. */
  reduce<Message extends object>(
    request: TrimRequest<Message> | ResponsesRequest<Message>,
    call?: TrimCall,
  ): Reduction<Message>;
  /** Takes the `usage` of the response to the last reduced request, so that the counter's error does not grow. Ignored before the first
   *  one, and where it has no input tokens. */
  observe(usage: unknown): void;
  /** The state as plain JSON, also written to the store where there is one. */
  checkpoint(): Promise<Checkpoint>;
  /** Trimmed content by the id that its ledger entry has; undefined when nobody has it any more. */
  recall(id: string): Promise<Recalled | undefined>;
}

export async function createTrimmer(options: TrimmerOptions): Promise<Trimmer> {
  const settings = settleOptions(options);
  const { store, sessionId } = settings;
  const given = settings.checkpoint ?? (store && (await loadCheckpoint(store, sessionId)));
  const counter = settings.counter ?? (await createCounter("auto", { model: settings.model }));
  const state = openState({ ...settings, counter }, given === undefined ? undefined : checkCheckpoint(given));
  let sentTokens: number | undefined;
  let savedEpochs = state.ledger.ledger.epochs.length;
  return {
    reduce<Message extends object>(
      request: TrimRequest<Message> | ResponsesRequest<Message>,
      call: TrimCall = {},
    ) {
      const reduction = trim(state, partsOf(request), call);
      sentTokens = reduction.stats.after;
      // Edits stay within the format, and so within the caller's type of message.
      return reduction as Reduction<Message>;
    },
    observe(usage) {
      if (sentTokens !== undefined) state.budget.observe(usage, sentTokens);
    },
    async checkpoint() {
      const checkpoint = checkpointOf(state);
      if (store !== undefined) {
        const messages = state.history?.messages ?? [];
        savedEpochs = await saveOriginals(store, { sessionId, messages, ledger: state.ledger, savedEpochs });
        await saveCheckpoint(store, sessionId, checkpoint);
      }
      return checkpoint;
    },
    async recall(id) {
      const entry = state.ledger.entry(id);
      const recalled = entry && recallFrom(state.history?.messages ?? [], entry);
      return recalled ?? (store && (await recallFromStore(store, { sessionId, id, chain: entry?.chain })));
    },
  };
}

function openState(
  settings: TrimmerSettings & { counter: TrimState["counter"] },
  checkpoint?: Checkpoint,
): TrimState {
  const { counter } = settings;
  return {
    settings,
    counter,
    policy: createPolicy(settings.policy, settings),
    ledger: createLedgerIndex(checkpoint?.ledger),
    budget: createMessageBudget({ ...settings, counter, calibrator: checkpoint?.calibrator }),
    lens: undefined,
    history: undefined,
    isSettled: false,
  };
}

/** A copy: the ledger goes on growing, the checkpoint does not. */
function checkpointOf({ settings, ledger, budget }: TrimState): Checkpoint {
  const calibrator = budget.snapshot();
  return structuredClone({
    version: 2,
    policy: settings.policy,
    ledger: ledger.ledger,
    ...(calibrator !== undefined && { calibrator }),
  });
}
