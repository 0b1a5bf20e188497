/** What travels between page and server, and what the page remembers. */

export type Vec3 = [number, number, number];

export interface Tissue {
  name: string;
  full_name: string;
  colour: Vec3;
}

export interface Quantity {
  key: string;
  unit: string;
  definition: string;
  source: string;
  tolerance: number;
  tolerance_unit: string;
  count: boolean;
  quantiles: number[] | null;
}

export interface Anatomy {
  name: string;
  title: string;
  edge_mm: number;
  camera: { azimuth_deg: number; elevation_deg: number };
  ghost: string[];
  tissues: Tissue[];
  population: string;
  quantities: Quantity[];
  tasks: { name: string; description: string }[];
}

export interface Box {
  centre_mm: Vec3;
  size_mm: Vec3;
  rotation_deg: Vec3;
}

/** A domain as a spec has it; only a box has a place of its own. */
export type Domain = { family: string; grid: Vec3 } & Partial<Box> & Record<string, unknown>;

export interface Target {
  volume_ml?: number;
  centroid_mm?: Vec3;
  spread_mm?: number;
  diameter_mm?: number;
  betti?: { b0?: number; b1?: number; b2?: number };
  [other: string]: unknown;
}

export interface Constraint {
  name: string;
  structure: string[];
  domain: Domain;
  match?: string[];
  target?: Target;
  tolerance?: Record<string, number>;
  [other: string]: unknown;
}

/** One entry of a spec's `ask`, in the page's words. */
export interface Ask {
  how: "equal" | "range" | "least" | "most";
  value: number;
  high?: number;
  tolerance?: number;
}

/** What is asked: the part that undo and redo go through and that becomes the spec. */
export interface Doc {
  anatomy: string;
  name: string;
  constraints: Constraint[];
  ask: Record<string, Ask>;
  /** Lines of the spec's `ask` that the panel has no place for: relations, percentiles. */
  lines: string[];
  reference: boolean;
  samples: number;
  seed: number;
  steps: number | null;
}

export interface Ellipsoid {
  centre_mm: Vec3;
  axes_mm: [Vec3, Vec3, Vec3];
}

export interface PlacedDomain {
  valid: boolean;
  reason: string;
  grid: Vec3;
  centre_mm: Vec3;
  size_mm: Vec3;
  rotation: [Vec3, Vec3, Vec3];
  volume_ml?: number;
  centroid_mm?: Vec3;
  spread_mm?: number;
  betti?: { b0: number; b1: number; b2: number };
  achieved?: Ellipsoid;
  target?: Ellipsoid | null;
}

export interface PlacedConstraint {
  name: string;
  structure: string[];
  family: string;
  domains: PlacedDomain[];
}

export interface Comparison {
  constraint: string;
  outside: boolean;
  distance: number;
  limit: number;
  nearest: Record<string, number | number[]>;
}

export interface Plan {
  yaml: string;
  spec: { constraints?: Constraint[]; ask?: unknown; name?: string; anatomy?: string } | null;
  asks: Record<string, Ask>;
  lines: string[];
  constraints: PlacedConstraint[];
  population: Comparison[];
  command: string;
}

export interface Check {
  constraint: string;
  domain: number;
  domains: number;
  quantity: string;
  unit: string;
  requested: number | number[];
  achieved: number | number[];
  error: number;
  tolerance: number;
  error_unit: string;
  met: boolean;
  note: string;
  in_tolerances: number;
}

export interface Patient {
  id: string;
  name: string;
  anatomy: string;
  shape: Vec3;
  volumes_ml: Record<string, number>;
  /** Pairs of tissues that touch, the widest contact first. */
  contacts: [string, string][];
  job?: string;
  seed?: number;
  met?: boolean;
  valid?: boolean;
  seconds?: number;
  drawn?: number;
  checks?: Check[];
  unusual?: Record<string, unknown>[];
}

export interface StepError {
  constraint: string;
  quantity: string;
  error: number;
  tolerance: number;
  in_tolerances: number;
}

export interface StepEvent {
  type: "step";
  job: string;
  seed: number;
  turn: number;
  step: number;
  steps: number;
  errors: StepError[];
}

export type ServerEvent =
  | StepEvent
  | { type: "started"; job: string }
  | { type: "ended"; job: string; state: "done" | "cancelled" | "failed"; sentence?: string }
  | { type: "patient"; patient: Patient }
  | { type: "forgotten"; patient: string }
  | { type: "behind" };

/** A patient's quantities; `place` says that one is measured around a place that a box can take. */
export type Values = Record<string, { value: number | null; reason: string; place: boolean }>;
