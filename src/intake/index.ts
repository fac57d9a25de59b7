export { createMessageIntake, type MessageIntake, type SavedAdmissions, withHeldIn } from "./admit-messages.ts";
export {
  type AdmittedResult,
  createIntake,
  type HeldLines,
  heldCollection,
  type IncomingResult,
  type Intake,
  type IntakeOptions,
  readOriginal,
} from "./intake.ts";
export { createParallelCalls, type ParallelCalls } from "./parallel-calls.ts";
export { forgetIntake, listIntakeUses, pruneIntake } from "./prune-intake.ts";
export { recallLines } from "./recall-lines.ts";
