export { createMessageIntake, type MessageIntake, type SavedAdmissions, separateContexts } from "./admit-messages.ts";
export {
  type AdmittedResult,
  createIntake,
  type HeldLines,
  type IncomingResult,
  type Intake,
  type IntakeOptions,
} from "./intake.ts";
export { contextCollection, type FoundNote, findNotes, isOwnNote, readOriginal } from "./originals.ts";
export { createParallelCalls, type ParallelCalls } from "./parallel-calls.ts";
export { forgetIntake, listIntakeUses, pruneIntake } from "./prune-intake.ts";
export { quoteNotes } from "./quote-notes.ts";
export { recallLines } from "./recall-lines.ts";
