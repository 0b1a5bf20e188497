/** The panel of clinical quantities: search, current value, the population, and a target. */
import { button, h, numberField, redrawn, shown } from "./dom";
import { histogram } from "./histogram";
import { snapTo } from "./snapping";
import { store } from "./store";
import type { Ask, Quantity, Values } from "./types";

const MOST = 60;
const NO_POPULATION = "No histogram: this model's card has no percentiles of this quantity. A target is tried as it is, and measured in the result.";
let wanted = "";
let open: string | null = null;

export function quantitiesPanel(): HTMLElement {
  const list = h("div", { class: "quantities", id: "quantities" });
  const search = h("input", {
    type: "search",
    id: "quantity-search",
    placeholder: "Search: diameter, volume, angle …",
    "aria-label": "search quantities",
    onInput: ((e: Event) => {
      wanted = (e.target as HTMLInputElement).value;
      draw();
    }) as EventListener,
  });
  const draw = redrawn(list, () => {
    const anatomy = store.anatomy;
    if (!anatomy) return [];
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = anatomy.quantities.filter((q) => {
      const text = `${q.key} ${q.definition}`.toLowerCase();
      return words.every((w) => text.includes(w));
    });
    // What is asked first, then what this patient has: a lumbar spine begins with its own vertebrae.
    const values = store.told.values[store.view.patient ?? ""];
    const place = (q: Quantity) => (q.key in store.doc.ask ? 0 : !values || (values[q.key]?.value ?? null) !== null ? 1 : 2);
    const sorted = [0, 1, 2].flatMap((k) => fits.filter((q) => place(q) === k));
    return [
      ...sorted.slice(0, MOST).map(row),
      fits.length > MOST ? h("p", { class: "hint" }, `${fits.length - MOST} more; search to narrow`) : null,
      fits.length ? null : h("p", { class: "hint" }, "No quantity has all of these words."),
    ];
  });
  store.on(["values", "patients"], draw);
  let asked = "";
  let anatomy = store.doc.anatomy;
  store.on(["doc"], () => {
    if (anatomy !== store.doc.anatomy) wanted = (search as HTMLInputElement).value = ""; // its quantities have other names
    anatomy = store.doc.anatomy;
    // Boxes that move change nothing here.
    const now = JSON.stringify([store.doc.anatomy, store.doc.ask]);
    if (now !== asked) draw();
    asked = now;
  });
  let shownPatient = store.view.patient;
  store.on(["view"], () => {
    if (shownPatient !== store.view.patient) draw();
    shownPatient = store.view.patient;
  });
  draw();
  return h("section", { class: "panel-part grow" }, h("div", { class: "search" }, search), list);
}

function row(q: Quantity): HTMLElement {
  const found = store.told.values[store.view.patient ?? ""]?.[q.key];
  const ask = store.doc.ask[q.key];
  const chosen = open === q.key || ask !== undefined;
  const head = h(
    "button",
    {
      type: "button",
      class: "quantity-head",
      "aria-expanded": String(chosen),
      "data-focus": `head-${q.key}`,
      title: `${q.definition} (${q.source})`,
      onClick: (() => {
        open = open === q.key ? null : q.key;
        store.tell("values");
      }) as EventListener,
    },
    h("span", { class: "key" }, ...q.key.split(/(?<=[._])/).flatMap((part) => [part, document.createElement("wbr")])),
    h("span", { class: "number", "data-value": q.key }, found ? `${shown(found.value)} ${found.value === null ? "" : unit(q)}` : store.view.patient ? "…" : ""),
    chosen ? null : h("span", { class: "about" }, q.definition),
  );
  return h("div", { class: `quantity${ask ? " asked" : ""}`, "data-key": q.key }, head, chosen ? body(q, found, ask) : null);
}

function unit(q: Quantity): string {
  return q.unit === "1" ? "" : q.unit.replace("mm2", "mm²").replace("mm3", "mm³").replace("deg", "°");
}

function body(q: Quantity, found: Values[string] | undefined, ask: Ask | undefined): HTMLElement {
  const value = found?.value ?? null;
  const change = (next: Ask | null, gesture: string | null = null) => {
    store.edit((doc) => {
      if (next) doc.ask[q.key] = next;
      else delete doc.ask[q.key];
    }, gesture);
    if (gesture === null) store.endGesture();
  };
  const now: Ask = ask ?? { how: "equal", value: value ?? q.quantiles?.[10] ?? 0 };
  return h(
    "div",
    { class: "quantity-body" },
    h("p", { class: "definition" }, q.definition),
    found && found.value === null ? h("p", { class: "hint" }, `Not in this patient: ${found.reason}.`) : null,
    q.quantiles &&
      histogram({
        quantity: q,
        quantiles: q.quantiles,
        value,
        ask,
        onTarget: (v, high, done) => {
          change({ ...now, value: v, ...(high === undefined ? {} : { high }) }, `target-${q.key}`);
          if (done) store.endGesture();
        },
      }),
    h("p", { class: "source" }, q.quantiles ? `Population: ${store.anatomy?.population ?? ""}` : NO_POPULATION),
    h(
      "div",
      { class: "line" },
      how(q, now, change),
      number(q, now.how === "range" ? "from" : "target", ask ? now.value : null, (v) => change(ordered({ ...now, value: v })), "target"),
      now.how === "range"
        ? number(q, "to", ask ? (now.high ?? now.value) : null, (v) => change(ordered({ ...now, high: v })), "high")
        : null,
      h("span", { class: "unit" }, unit(q)),
      ask ? button("Remove target", () => change(null), { icon: "close", text: false, class: "quiet" }) : null,
    ),
    ask ? feasibility(q, ask, change) : null,
    ask && ask.how === "equal" && !q.count
      ? h(
          "div",
          { class: "line" },
          h("span", { class: "label" }, "Tolerance ±"),
          number(q, "tolerance", ask.tolerance ?? q.tolerance, (v) => change({ ...ask, tolerance: v }), "tolerance"),
          h("span", { class: "unit" }, q.tolerance_unit.replace("%abs", "points")),
        )
      : null,
    found?.place
      ? button("Box here", () => void snapTo({ to: "quantity", key: q.key }), { icon: "magnet", class: "quiet small", title: "Put a box where this is measured" })
      : null,
  );
}

function how(q: Quantity, now: Ask, change: (next: Ask) => void): HTMLElement {
  const names: [Ask["how"], string][] = [["equal", "="], ["least", "≥"], ["most", "≤"], ["range", "range"]];
  const select = h(
    "select",
    {
      "aria-label": `how ${q.key} is asked`,
      "data-focus": `how-${q.key}`,
      onChange: ((e: Event) => {
        const kind = (e.target as HTMLSelectElement).value as Ask["how"];
        change(kind === "range" ? around(q, now.value) : { how: kind, value: now.value });
      }) as EventListener,
    },
    ...names.map(([value, text]) => h("option", { value, selected: now.how === value }, text)),
  );
  return select;
}

/** A range to begin with: a tenth of the population's width, p5 to p95, on either side. */
function around(q: Quantity, value: number): Ask {
  const wide = q.quantiles ? (q.quantiles[19]! - q.quantiles[1]!) / 10 : Math.abs(value) / 20;
  const side = q.count ? Math.max(Math.round(wide), 1) : wide || 1;
  return { how: "range", value: Number((value - side).toPrecision(4)), high: Number((value + side).toPrecision(4)) };
}

function ordered(ask: Ask): Ask {
  return ask.how === "range" && ask.high !== undefined && ask.high < ask.value ? { ...ask, value: ask.high, high: ask.value } : ask;
}

function number(q: Quantity, what: string, value: number | null, set: (v: number) => void, id: string): HTMLInputElement {
  const about = { placeholder: what, "aria-label": `${what} of ${q.key}`, "data-focus": `${id}-${q.key}`, "data-input": `${id}-${q.key}` };
  return numberField(about, value === null ? undefined : Number(value.toPrecision(5)), (v) => {
    if (v === undefined) store.tell("values");
    else set(v);
  });
}

/** Whether the population has anything like the target, said at once. */
function feasibility(q: Quantity, ask: Ask, change: (next: Ask) => void): HTMLElement | null {
  const known = q.quantiles;
  if (!known) return null;
  const low = known[0]!;
  const high = known[known.length - 1]!;
  const lower = ask.how === "most" ? -Infinity : ask.value;
  const upper = ask.how === "least" ? Infinity : ask.how === "range" ? (ask.high ?? ask.value) : ask.value;
  if (lower <= high && upper >= low) {
    if (ask.how !== "equal") return null;
    const i = known.findIndex((v) => v >= ask.value);
    const before = known[Math.max(i - 1, 0)]!;
    const share = i <= 0 ? 0 : (i - 1 + (ask.value - before) / Math.max(known[i]! - before, 1e-9)) * 5;
    return h("p", { class: "hint" }, `${Math.round(share)} % of the population lie below.`);
  }
  const nearest = lower > high ? inward(high, Math.floor) : inward(low, Math.ceil);
  return h(
    "p",
    { class: "warning", role: "alert" },
    `Not feasible: the population reaches from ${shown(low)} to ${shown(high)} ${unit(q)}. `,
    button(`Use ${shown(nearest)}`, () => change({ how: "equal", value: nearest }), { class: "small" }),
  );
}

/** Four digits, rounded to the side on which the population lies. */
function inward(value: number, round: (x: number) => number): number {
  if (value === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  return Number((round(value / unit) * unit).toPrecision(4));
}
