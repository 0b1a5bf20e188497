/** The page's memory: what is asked (with undo), how it is shown, and what the server has told. */
import type { Anatomy, Comparison, Doc, Patient, Plan, StepEvent, Values, Vec3 } from "./types";

export interface TissueLook {
  opacity: number;
  visible: boolean;
  /** The person's own colour; without it the palette's. */
  colour?: string;
}

export interface View {
  patient: string | null;
  other: string | null;
  compare: "off" | "side" | "slider";
  divider: number;
  selected: number | null;
  mode: "move" | "rotate" | "scale";
  tab: "targets" | "spec" | "run";
  theme: "dark" | "light";
  palette: "anatomy" | "safe";
  looks: Record<string, Record<string, TissueLook>>;
  solo: string | null;
  cursor: Vec3;
  /** How much the slices are enlarged, and the point in RAS mm about which. */
  zoom: number;
  focus: Vec3;
  ellipsoids: boolean;
  toured: boolean;
}

export interface Job {
  id: string;
  state: "waiting" | "running" | "done" | "cancelled" | "failed";
  samples: number;
  sentence?: string;
  steps: StepEvent[];
  finished: number;
  begun: number;
}

export interface Told {
  anatomies: Anatomy[];
  version: string;
  patients: Patient[];
  values: Record<string, Values>;
  jobs: Job[];
  plan: Plan | null;
  /** The state of what is asked, and the patient, that `plan` or `problem` answers. */
  answered: string;
  problem: string | null;
  connected: boolean;
}

/** `gesture` says that one has ended. `cursor` is said instead of `view` when only what is in `LIGHT` changed: most panels do not care. */
export type Topic = "doc" | "view" | "cursor" | "patients" | "values" | "jobs" | "plan" | "step" | "gesture";

/** What a mouse changes with every frame. */
const LIGHT = new Set(["cursor", "divider", "zoom", "focus"]);
const KEPT = "anatomica-studio";
/** ms without a change after which the session is written down; a drag changes it with every frame. */
const KEEP_AFTER = 250;
const MOST_UNDO = 100;

const emptyDoc: Doc = {
  anatomy: "cardiac",
  name: "studio",
  constraints: [],
  ask: {},
  lines: [],
  reference: true,
  samples: 1,
  seed: 0,
  steps: null,
};

const firstView: View = {
  patient: null,
  other: null,
  compare: "off",
  divider: 0.5,
  selected: null,
  mode: "move",
  tab: "targets",
  theme: window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark",
  palette: "anatomy",
  looks: {},
  solo: null,
  cursor: [0, 0, 0],
  zoom: 1,
  focus: [0, 0, 0],
  ellipsoids: true,
  toured: false,
};

class Store {
  doc: Doc = structuredClone(emptyDoc);
  view: View = { ...firstView };
  told: Told = {
    anatomies: [],
    version: "",
    patients: [],
    values: {},
    jobs: [],
    plan: null,
    answered: "",
    problem: null,
    connected: false,
  };
  private revision = 0;
  private keeping = 0;
  private past: string[] = [];
  private future: string[] = [];
  private listeners = new Map<Topic, Set<() => void>>();

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
      if (kept.doc) this.doc = { ...this.doc, ...kept.doc };
      if (kept.view) this.view = { ...this.view, ...kept.view };
    } catch {
      localStorage.removeItem(KEPT);
    }
    window.addEventListener("pagehide", () => this.write());
  }

  on(topics: Topic[], listener: () => void): void {
    for (const topic of topics) {
      if (!this.listeners.has(topic)) this.listeners.set(topic, new Set());
      this.listeners.get(topic)!.add(listener);
    }
  }

  tell(...topics: Topic[]): void {
    const called = new Set<() => void>();
    for (const topic of topics) this.listeners.get(topic)?.forEach((listener) => called.add(listener));
    called.forEach((listener) => listener());
  }

  /** Change what is asked. A run of changes with one `gesture` (a drag) is undone at once. */
  private gesture: string | null = null;
  edit(change: (doc: Doc) => void, gesture: string | null = null): void {
    const before = JSON.stringify(this.doc);
    if (gesture === null || gesture !== this.gesture) {
      this.past.push(before);
      if (this.past.length > MOST_UNDO) this.past.shift();
      this.future = [];
    }
    this.gesture = gesture;
    const next = structuredClone(this.doc);
    change(next);
    this.doc = next;
    this.revision++;
    this.keep();
    this.tell("doc");
  }

  endGesture(): void {
    const ended = this.gesture !== null;
    this.gesture = null;
    if (ended) this.tell("gesture");
  }

  get inGesture(): boolean {
    return this.gesture !== null;
  }

  undo(): void {
    this.travel(this.past, this.future);
  }

  redo(): void {
    this.travel(this.future, this.past);
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  private travel(from: string[], to: string[]): void {
    const found = from.pop();
    if (found === undefined) return;
    to.push(JSON.stringify(this.doc));
    this.doc = JSON.parse(found);
    this.gesture = null;
    this.revision++;
    const count = this.doc.constraints.length;
    if (this.view.selected !== null && this.view.selected >= count) this.view.selected = null;
    this.keep();
    this.tell("doc", "view");
  }

  show(change: Partial<View>): void {
    Object.assign(this.view, change);
    this.keep();
    const keys = Object.keys(change);
    this.tell(keys.length && keys.every((k) => LIGHT.has(k)) ? "cursor" : "view");
  }

  private keep(): void {
    clearTimeout(this.keeping);
    this.keeping = window.setTimeout(() => this.write(), KEEP_AFTER);
  }

  private write(): void {
    try {
      localStorage.setItem(KEPT, JSON.stringify({ doc: this.doc, view: this.view }));
    } catch {
      /* private windows may have no room; the session then does not survive a reload */
    }
  }

  get anatomy(): Anatomy | undefined {
    return this.named(this.doc.anatomy);
  }

  named(anatomy: string | undefined): Anatomy | undefined {
    return this.told.anatomies.find((a) => a.name === anatomy);
  }

  get patient(): Patient | undefined {
    return this.told.patients.find((p) => p.id === this.view.patient);
  }

  /** The shown patient's id, if it is of the anatomy that is asked about. */
  get reference(): string | null {
    return this.patient?.anatomy === this.doc.anatomy ? this.patient.id : null;
  }

  /** Which question the server is to answer: what is asked now, about whom. */
  get question(): string {
    return `${this.revision} ${this.reference ?? ""}`;
  }

  /** Whether measured values belong to what is asked and shown now; else they are on their way. */
  get current(): boolean {
    return this.told.answered === this.question;
  }

  look(tissue: string, of: Anatomy | undefined = this.anatomy): TissueLook {
    const known = this.view.looks[of?.name ?? ""]?.[tissue];
    return known ?? { visible: true, opacity: of?.ghost.includes(tissue) ? 0.35 : 1 };
  }

  setLook(tissue: string, change: Partial<TissueLook>): void {
    const all = (this.view.looks[this.doc.anatomy] ??= {});
    all[tissue] = { ...this.look(tissue), ...change };
    this.show({});
  }

  comparison(name: string): Comparison | undefined {
    return this.told.plan?.population.find((c) => c.constraint === name);
  }
}

export const store = new Store();
