/** Boxes that go where something is: a tissue's box, an interface, the place of a quantity. */
import { api } from "./api";
import { models } from "./models";
import { store } from "./store";
import { toast } from "./toasts";
import type { Box, Constraint } from "./types";

export function freshName(stem: string): string {
  const taken = new Set(store.doc.constraints.map((c) => c.name));
  let name = stem;
  for (let i = 2; taken.has(name); i++) name = `${stem} ${i}`;
  return name;
}

function boxConstraint(name: string, structure: string[], box: Box): Constraint {
  return { name, structure, domain: { family: "box", grid: [32, 32, 32], ...box }, match: [], target: {} };
}

export function addBox(box?: Box, structure?: string[], name?: string): void {
  const anatomy = store.anatomy;
  if (!anatomy) return;
  const edge = anatomy.edge_mm;
  const size = Number((edge / 4).toPrecision(2));
  const made = box ?? { centre_mm: [...store.view.cursor].map((x) => Math.round(x)) as Box["centre_mm"], size_mm: [size, size, size], rotation_deg: [0, 0, 0] };
  const tissues = structure ?? [tissueAtHand()];
  store.edit((doc) => doc.constraints.push(boxConstraint(freshName(name ?? `${tissues.join(" + ")} in box`), tissues, made)));
  store.show({ selected: store.doc.constraints.length - 1, tab: "targets" });
}

/** The tissue at hand: the one that is shown alone, else the one under the cross-hair, else the first that is there. */
export function tissueAtHand(): string {
  const patient = store.patient;
  const tissues = store.anatomy?.tissues.map((t) => t.name) ?? [];
  return store.view.solo ?? tissueAt() ?? tissues.find((t) => !patient || t in patient.volumes_ml) ?? tissues[0] ?? "";
}

/** The tissue under the cross-hair. */
export function tissueAt(): string | undefined {
  const label = models.get(store.reference ?? "")?.label(store.view.cursor) ?? 0;
  return store.anatomy?.tissues[label - 1]?.name;
}

/** Snap the chosen box there; without one, put a new box there. */
export async function snapTo(to: { to: string; tissues?: string[]; key?: string }): Promise<void> {
  const patient = store.reference;
  if (!patient) return toast("Load or generate a patient first: a box snaps to its tissues.", "error");
  try {
    const box = await api.snap(patient, to);
    const chosen = store.view.selected;
    const domain = chosen === null ? undefined : store.doc.constraints[chosen]?.domain;
    if (chosen !== null && domain?.family === "box") {
      store.edit((doc) => void Object.assign(doc.constraints[chosen]!.domain, box));
    } else addBox(box, to.tissues?.slice(0, 1), to.key);
    store.show({ cursor: [...box.centre_mm] });
  } catch (error) {
    toast((error as Error).message, "error");
  }
}
