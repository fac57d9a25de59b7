/** The shared state of sibling work: what phases made, hold, found out and decided. */
export interface FabricState extends FabricLists {
  readonly phases: readonly FabricPhase[];
}

/** What is added to, by kind. */
export interface FabricLists {
  readonly entanglements: readonly Entanglement[];
  readonly claims: readonly Claim[];
  readonly discoveries: readonly Discovery[];
  readonly notes: readonly FabricNote[];
}

export type FabricKind = keyof FabricLists;

/** The lists and, by kind, the number of the last id that was given: an id never comes back, also when its entry is dropped. */
export interface Fabric extends FabricLists {
  readonly lastIds: Readonly<Record<FabricKind, number>>;
}

export const phaseStates = ["waiting", "running", "completed", "failed", "blocked"] as const;
export type PhaseState = (typeof phaseStates)[number];

export interface FabricPhase {
  readonly id: string;
  readonly title: string;
  readonly state: PhaseState;
}

/** Something that others can build on: a function, a type, an endpoint. */
export interface Entanglement {
  readonly id: string;
  readonly package: string;
  readonly kind: string;
  readonly signature: string;
  readonly file?: string | undefined;
  readonly from: string;
}

/** A path that its owner changes. Active until the owner's phase is completed: a failed one runs again, on the same files. */
export interface Claim {
  readonly id: string;
  readonly path: string;
  readonly owner: string;
}

/** What stands in the way of somebody, until it is resolved. */
export interface Discovery {
  readonly id: string;
  readonly kind: string;
  readonly detail: string;
  readonly from: string;
  readonly affects?: string | undefined;
  /** YYYY-MM-DD. */
  readonly date?: string | undefined;
  readonly resolved: boolean;
}

export const noteKinds = ["decision", "failure", "feedback", "note"] as const;
export type NoteKind = (typeof noteKinds)[number];

export interface FabricNote {
  readonly id: string;
  readonly kind: NoteKind;
  readonly text: string;
  readonly from: string;
}

export const emptyFabric: Fabric = {
  entanglements: [],
  claims: [],
  discoveries: [],
  notes: [],
  lastIds: { entanglements: 0, claims: 0, discoveries: 0, notes: 0 },
};
