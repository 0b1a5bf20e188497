/** The patients of the session as thumbnails; two of them can be compared. */
import { api } from "./api";
import { downloadMenu } from "./downloads";
import { button, h, replace } from "./dom";
import { store } from "./store";
import type { Patient } from "./types";
import { verdict, WORDS } from "./verdict";

export const pictures = new Map<string, string>();

export function gallery(): HTMLElement {
  const strip = h("div", { class: "strip", id: "gallery", role: "listbox", "aria-label": "patients" });
  const draw = () => {
    const mine = store.told.patients.filter((p) => p.anatomy === store.doc.anatomy);
    replace(
      strip,
      ...mine.map(thumb),
      mine.length ? null : h("p", { class: "hint" }, "No patient yet: start from a phantom, a file, or generate one."),
    );
  };
  store.on(["patients"], draw);
  let last = "";
  store.on(["view", "doc"], () => {
    const key = [store.view.patient, store.view.other, store.view.compare, store.doc.anatomy].join();
    if (key !== last) draw();
    last = key;
  });
  draw();
  return h("div", { class: "gallery" }, strip, h("div", { class: "gallery-tools" }, compareTools(), downloadMenu()));
}

function thumb(p: Patient): HTMLElement {
  const chosen = store.view.patient === p.id;
  const other = store.view.compare !== "off" && store.view.other === p.id;
  const picture = pictures.get(p.id);
  const state = verdict(p);
  return h(
    "div",
    { class: `thumb${chosen ? " chosen" : ""}${other ? " other" : ""}`, "data-patient": p.id },
    h(
      "button",
      {
        type: "button",
        role: "option",
        "aria-selected": String(chosen),
        "data-focus": `thumb-${p.id}`,
        title: `${p.name}${state ? `, ${WORDS[state]}` : ""}; Shift-click to compare`,
        onClick: ((e: MouseEvent) => choose(p.id, e.shiftKey)) as EventListener,
      },
      picture ? h("img", { src: picture, alt: "", draggable: "false" }) : h("span", { class: "blank" }),
      h("span", { class: "caption" }, p.name, state ? h("span", { class: `dot ${state}`, title: WORDS[state] }) : null),
    ),
    button(`Remove ${p.name}`, () => void api.remove(p.id), { icon: "close", text: false, class: "quiet tiny remove" }),
  );
}

function choose(id: string, compare: boolean): void {
  if (compare && store.view.patient && store.view.patient !== id)
    store.show({ other: id, compare: store.view.compare === "off" ? "side" : store.view.compare });
  else store.show({ patient: id, ...(store.view.other === id ? { compare: "off" as const } : {}) });
}

function compareTools(): HTMLElement {
  const host = h("div", { class: "segmented", role: "group", "aria-label": "compare" });
  const draw = () => {
    const mine = store.told.patients.filter((p) => p.anatomy === store.doc.anatomy);
    const set = (compare: "off" | "side" | "slider") => {
      const others = mine.filter((p) => p.id !== store.view.patient);
      const other = others.find((p) => p.id === store.view.other) ?? others[others.length - 1];
      if (compare === "off" || other) store.show({ compare, other: other?.id ?? null });
    };
    const options = { class: "small", disabled: mine.length < 2 };
    const { compare } = store.view;
    replace(
      host,
      button("One", () => set("off"), { ...options, disabled: false, pressed: compare === "off", title: "Show one patient", id: "compare-off" }),
      button("Two", () => set("side"), { ...options, pressed: compare === "side", title: "Two patients side by side", id: "compare-side" }),
      button("Slider", () => set("slider"), { ...options, pressed: compare === "slider", title: "Before and after, with a slider", id: "compare-slider" }),
    );
  };
  let last = "";
  const changed = () => {
    const now = [store.view.compare, store.view.patient, store.told.patients.length, store.doc.anatomy].join();
    if (now !== last) draw();
    last = now;
  };
  store.on(["patients", "view", "doc"], changed);
  changed();
  return host;
}
