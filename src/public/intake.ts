/** Shortens tool results before a model first sees them: repeated text becomes a note, long results become a page. */
export {
  type AdmittedResult,
  createIntake,
  type IncomingResult,
  type Intake,
  type IntakeOptions,
} from "../conversation/intake/index.ts";
