/** Runs a plan of phases. An agent works on each phase and reads what the other phases reported. */
export {
  type ApplyEvent,
  type ApplyOptions,
  type ApplyReport,
  applyNebula,
  fabricOf,
  type LoadedNebula,
  loadNebula,
  type Nebula,
  type NebulaRecord,
  nebulaKey,
  openNebulaRecord,
  type Phase,
  planApply,
  readAnswer,
} from "../plans/nebula/index.ts";
