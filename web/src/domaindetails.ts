/** The fields of the chosen constraint: which tissue, where, and what it should be. */
import { h, numberField, shown } from "./dom";
import { freshName, snapTo } from "./snapping";
import { store } from "./store";
import type { Box, Constraint, PlacedConstraint, Target, Vec3 } from "./types";

export function edit(i: number, change: (c: Constraint) => void): void {
  store.edit((doc) => change(doc.constraints[i]!));
  store.endGesture();
}

export function details(c: Constraint, i: number, placed: PlacedConstraint | undefined): HTMLElement {
  const d = placed?.domains[0];
  const target = c.target ?? {};
  const set = (change: Partial<Target>) => edit(i, (now) => void (now.target = { ...now.target, ...change }));
  const matched = c.match ?? ["mass", "centroid", "shape", "spread"];
  return h(
    "div",
    { class: "details" },
    structure(c, i),
    c.domain.family === "box" ? snaps() : null,
    c.domain.family === "box" ? place(c.domain as unknown as Box, i) : null,
    h("h3", {}, "Should be"),
    line("Volume", number(`volume of ${c.name}`, target.volume_ml, (v) => set({ volume_ml: v }), `volume-${i}`), "mL", d?.volume_ml),
    line("Spread", number(`spread of ${c.name}`, target.spread_mm, (v) => set({ spread_mm: v }), `spread-${i}`), "mm", d?.spread_mm),
    counts(c, i, d?.betti),
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: matched.includes("centroid"),
        "data-focus": `match-${i}`,
        onChange: ((e: Event) =>
          edit(i, (now) => void (now.match = (e.target as HTMLInputElement).checked ? ["centroid", "shape"] : []))) as EventListener,
      }),
      "Place and shape as in the shown patient",
    ),
  );
}

function structure(c: Constraint, i: number): HTMLElement {
  return h(
    "label",
    { class: "line" },
    h("span", { class: "label" }, "Tissue"),
    h(
      "select",
      {
        "data-focus": `tissue-${i}`,
        onChange: ((e: Event) => retissue(i, (e.target as HTMLSelectElement).value)) as EventListener,
      },
      ...(c.structure.length > 1 ? [h("option", { selected: true }, c.structure.join(" + "))] : []),
      ...(store.anatomy?.tissues ?? []).map((t) =>
        h("option", { value: t.name, selected: c.structure.length === 1 && c.structure[0] === t.name }, `${t.name} · ${t.full_name}`),
      ),
    ),
  );
}

/** Another tissue; a name that the page gave follows it. */
function retissue(i: number, tissue: string): void {
  edit(i, (c) => {
    const given = new RegExp(`^${c.structure.join(" \\+ ")}( in box)?( \\d+)?$`).exec(c.name);
    c.structure = [tissue];
    if (given) c.name = freshName(`${tissue}${given[1] ?? ""}`);
  });
}

function place(box: Box, i: number): HTMLElement {
  const rows: [string, keyof Box, string][] = [["Centre", "centre_mm", "mm"], ["Size", "size_mm", "mm"], ["Turn", "rotation_deg", "°"]];
  return h(
    "div",
    { class: "place" },
    ...rows.map(([name, key, unit]) =>
      h(
        "div",
        { class: "line triple" },
        h("span", { class: "label" }, name),
        ...[0, 1, 2].map((k) =>
          number(`${name} ${"xyz"[k]}`, box[key]?.[k] ?? 0, (v) =>
            edit(i, (c) => {
              const next = [...((c.domain[key] as Vec3 | undefined) ?? [0, 0, 0])] as Vec3;
              next[k] = key === "size_mm" ? Math.max(v ?? 1, 1) : (v ?? 0);
              Object.assign(c.domain, { [key]: next });
            }), `${key}-${k}-${i}`),
        ),
        h("span", { class: "unit" }, unit),
      ),
    ),
  );
}

/** Where the chosen box can go: around a tissue, to where two touch, to a level of a vessel. */
function snaps(): HTMLElement {
  const tissues = store.anatomy?.tissues.filter((t) => !store.patient || t.name in store.patient.volumes_ml) ?? [];
  const values = store.told.values[store.reference ?? ""] ?? {};
  // One entry per level: its area and extreme diameters are measured at the same place.
  const levels = (store.anatomy?.quantities ?? []).filter((q) => values[q.key]?.place && /(^|\.)diameter_mm$/.test(q.key));
  const group = (label: string, options: HTMLElement[]) => (options.length ? h("optgroup", { label }, ...options) : null);
  const select = h(
    "select",
    {
      "aria-label": "snap the box to",
      "data-focus": "snap",
      disabled: !store.reference,
      title: store.reference ? "Take the box to a place in the shown patient" : "Load or generate a patient first",
      onChange: ((e: Event) => {
        const [to, ...names] = (e.target as HTMLSelectElement).value.split(" ");
        if (to === "quantity") void snapTo({ to, key: names[0]! });
        else if (to) void snapTo({ to, tissues: names });
      }) as EventListener,
    },
    h("option", { value: "" }, "a place …"),
    group("Around a tissue", tissues.map((t) => h("option", { value: `tissue ${t.name}` }, t.full_name))),
    group("Interface", (store.patient?.contacts ?? []).map(([a, b]) => h("option", { value: `interface ${a} ${b}` }, `${a} | ${b}`))),
    group("Level", levels.map((q) => h("option", { value: `quantity ${q.key}` }, q.key.replace(/\.diameter_mm$/, "").replaceAll("_", " ")))),
  );
  return h("label", { class: "line" }, h("span", { class: "label" }, "Snap to"), select);
}

/** Components, loops and voids, each with what there is now. */
function counts(c: Constraint, i: number, now?: { b0: number; b1: number; b2: number }): HTMLElement {
  const betti = c.target?.betti ?? {};
  const set = (key: "b0" | "b1" | "b2", v: number | undefined) =>
    edit(i, (next) => {
      const wanted = { ...next.target?.betti, [key]: v };
      if (v === undefined) delete wanted[key];
      next.target = { ...next.target, betti: wanted };
      if (!Object.keys(wanted).length) delete next.target.betti;
    });
  const names = { b0: "pieces", b1: "loops", b2: "voids" } as const;
  const field = (key: keyof typeof names) =>
    numberField(
      { placeholder: names[key], "aria-label": `${names[key]} of ${c.name}`, title: names[key], "data-focus": `${key}-${i}`, "data-input": `${key}-${i}` },
      betti[key],
      (v) => set(key, v === undefined ? undefined : Math.max(0, Math.round(v))),
    );
  return h(
    "div",
    {},
    h(
      "div",
      { class: "line" },
      h("span", { class: "hint" }, "Pieces, loops, voids"),
      h("span", { class: "now", title: "measured in the shown patient" }, now ? `now ${now.b0}, ${now.b1}, ${now.b2}` : ""),
    ),
    h("div", { class: "line triple counts" }, field("b0"), field("b1"), field("b2")),
  );
}

function line(name: string, input: HTMLElement, unit: string, now?: number): HTMLElement {
  return h(
    "div",
    { class: "line" },
    h("span", { class: "label" }, name),
    input,
    h("span", { class: "unit" }, unit),
    h("span", { class: "now", title: "measured in the shown patient" }, now === undefined ? "" : `now ${shown(now)}`),
  );
}

function number(label: string, value: number | undefined, set: (v: number | undefined) => void, focus: string): HTMLInputElement {
  return numberField({ placeholder: "free", "aria-label": label, "data-focus": focus, "data-input": focus }, value, set);
}
