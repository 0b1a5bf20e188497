/** The constraints: a structure in a domain, and what is measured there now. */
import { button, h, redrawn, say, shown } from "./dom";
import { details, edit } from "./domaindetails";
import { addBox, freshName, tissueAtHand } from "./snapping";
import { store } from "./store";
import type { Constraint, PlacedConstraint } from "./types";

/** ms between two updates of the numbers of a box that is dragged: text costs more to paint than the views. */
const FOLLOW = 250;

export function domainsPanel(): HTMLElement {
  const list = h("div", { class: "domains", id: "domains" });
  const draw = redrawn(list, () => {
    const cards = store.doc.constraints.map(card);
    return cards.length
      ? cards
      : [h("p", { class: "hint" }, "A domain is the place where something is asked: a box, or a whole tissue. Add one here, or ask for a quantity on the right.")];
  });
  let waiting = 0;
  const soon = () => {
    if (!store.inGesture) return draw();
    for (const shownCard of list.children) shownCard.setAttribute("aria-busy", String(!store.current));
    waiting ||= window.setTimeout(() => {
      waiting = 0;
      if (store.inGesture) follow(list);
    }, FOLLOW);
  };
  store.on(["doc", "plan", "values", "patients", "gesture"], soon);
  let selected = store.view.selected;
  store.on(["view"], () => {
    if (selected !== store.view.selected) draw();
    selected = store.view.selected;
  });
  draw();
  return h(
    "section",
    { class: "panel-part grow", id: "domains-panel" },
    h(
      "h2",
      {},
      "Domains",
      h("span", { class: "space" }),
      button("Box", () => addBox(), { icon: "plus", class: "small", title: "Add a box (B)", id: "add-box" }),
      button("Tissue", addWhole, { icon: "plus", class: "small", title: "Ask about a whole tissue", id: "add-whole" }),
    ),
    list,
  );
}

/** The numbers of a box that is dragged, in the cards as they stand. */
function follow(list: HTMLElement): void {
  store.doc.constraints.forEach((c, i) => {
    const value = placedOf(c)?.domains[0]?.volume_ml;
    const measured = list.querySelector(`[data-measured="${CSS.escape(c.name)}"]`);
    if (measured && value !== undefined) say(measured, `${shown(value)} mL`);
    for (const key of ["centre_mm", "size_mm", "rotation_deg"] as const)
      for (const k of [0, 1, 2]) {
        const input = list.querySelector<HTMLInputElement>(`[data-input="${key}-${k}-${i}"]`);
        const text = String(c.domain[key]?.[k] ?? 0);
        if (input && input.value !== text) input.value = input.defaultValue = text;
      }
  });
}

function placedOf(c: Constraint): PlacedConstraint | undefined {
  return store.told.plan?.constraints.find((p) => p.name === c.name);
}

function addWhole(): void {
  const tissue = tissueAtHand();
  const n = 64;
  store.edit((doc) =>
    doc.constraints.push({
      name: freshName(tissue),
      structure: [tissue],
      domain: { family: "global", grid: [n, n, n] },
      match: [],
      target: {},
    }),
  );
  store.show({ selected: store.doc.constraints.length - 1 });
}

function card(c: Constraint, i: number): HTMLElement {
  const chosen = store.view.selected === i;
  const placed = placedOf(c);
  const compared = store.comparison(c.name);
  return h(
    "article",
    { class: `card${chosen ? " chosen" : ""}`, "data-constraint": c.name, "aria-busy": String(!store.current) },
    h(
      "header",
      {},
      h(
        "button",
        {
          type: "button",
          class: "card-title",
          "aria-expanded": String(chosen),
          "data-focus": `card-${i}`,
          onClick: (() => store.show({ selected: chosen ? null : i })) as EventListener,
        },
        h("span", { class: "name" }, c.name),
        h("span", { class: "family" }, c.domain.family),
      ),
      button(`Remove ${c.name}`, () => remove(i), { icon: "close", text: false, class: "quiet tiny" }),
    ),
    summary(c, placed),
    chosen ? details(c, i, placed) : null,
    compared?.outside
      ? h("p", { class: "warning", role: "alert" }, `Unlike the population: distance ${shown(compared.distance)}, where 95 % lie within ${shown(compared.limit)}. `, nearest(c, i, compared.nearest))
      : null,
  );
}

export function remove(i: number): void {
  store.edit((doc) => void doc.constraints.splice(i, 1));
  store.show({ selected: null });
}

/** The asked numbers as the population has them, as near as it comes. */
function nearest(c: Constraint, i: number, found: Record<string, number | number[]>): HTMLElement | null {
  const units = { volume_ml: "mL", spread_mm: "mm", diameter_mm: "mm" } as const;
  const keys = (Object.keys(units) as (keyof typeof units)[]).filter((k) => c.target?.[k] !== undefined && typeof found[k] === "number");
  if (!keys.length) return null;
  const values = Object.fromEntries(keys.map((k) => [k, Number((found[k] as number).toPrecision(4))]));
  const text = keys.map((k) => `${shown(values[k])} ${units[k]}`).join(", ");
  return button(`Use ${text}`, () => edit(i, (now) => void (now.target = { ...now.target, ...values })), { class: "small" });
}

function summary(c: Constraint, placed: PlacedConstraint | undefined): HTMLElement {
  const d = placed?.domains[0];
  const target = c.target?.volume_ml;
  const busy = store.current ? null : h("span", { class: "busy" }, "measuring …");
  if (!d) return h("p", { class: "measured" }, c.structure.join(" + "), store.reference ? busy : " · no patient to measure");
  if (!d.valid) return h("p", { class: "warning" }, `No place: ${d.reason}`);
  const several = placed.domains.length > 1 ? ` · first of ${placed.domains.length} places` : "";
  return h(
    "p",
    { class: "measured" },
    h("strong", { "data-measured": c.name }, d.volume_ml === undefined ? "–" : `${shown(d.volume_ml)} mL`),
    target === undefined ? null : h("span", { class: "goal" }, ` → ${shown(target)} mL`),
    ` ${c.structure.join(" + ")}${several}`,
    busy,
  );
}
