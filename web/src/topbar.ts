/** The bar at the top: which anatomy, where to start from, undo, and how it looks. */
import { api } from "./api";
import { button, h, replace } from "./dom";
import { HELP } from "./keyboard";
import { chooseFile } from "./opening";
import { generatePlain } from "./runpanel";
import { store } from "./store";
import { toast } from "./toasts";
import { tour } from "./tour";

export function topbar(): HTMLElement {
  const anatomies = h("div", { class: "segmented", role: "group", "aria-label": "anatomy", id: "anatomies" });
  const tools = h("div", { class: "tools" });
  const draw = () => {
    replace(
      anatomies,
      ...store.told.anatomies.map((a) =>
        button(a.name, () => choose(a.name), { pressed: store.doc.anatomy === a.name, title: a.title, id: `anatomy-${a.name}` }),
      ),
    );
    replace(
      tools,
      button("Undo", () => store.undo(), { icon: "undo", text: false, class: "quiet", disabled: !store.canUndo, title: "Undo (Ctrl+Z)", id: "undo" }),
      button("Redo", () => store.redo(), { icon: "redo", text: false, class: "quiet", disabled: !store.canRedo, title: "Redo (Ctrl+Y)", id: "redo" }),
      h("span", { class: "rule" }),
      button("Colours for colour-blind people", () => store.show({ palette: store.view.palette === "safe" ? "anatomy" : "safe" }), {
        icon: "drop", text: false, class: "quiet", pressed: store.view.palette === "safe", id: "palette",
      }),
      button(store.view.theme === "dark" ? "Light theme" : "Dark theme", () => store.show({ theme: store.view.theme === "dark" ? "light" : "dark" }), {
        icon: store.view.theme === "dark" ? "sun" : "moon", text: false, class: "quiet", id: "theme",
      }),
      button("Tour and keys", tour, { icon: "help", text: false, class: "quiet", title: `Tour\n${HELP}`, id: "help" }),
    );
  };
  let last = "";
  const changed = () => {
    const now = [store.doc.anatomy, store.canUndo, store.canRedo, store.view.palette, store.view.theme, store.told.anatomies.length].join();
    if (now !== last) draw();
    last = now;
  };
  store.on(["doc", "view", "patients"], changed);
  changed();
  return h("header", { class: "topbar" }, h("h1", {}, h("span", { class: "mark", "aria-hidden": "true" }), "anatomica", h("em", {}, "studio")), anatomies, start(), h("span", { class: "space" }), tools);
}

export function choose(anatomy: string): void {
  if (store.doc.anatomy === anatomy) return;
  store.edit((doc) => {
    doc.anatomy = anatomy;
    doc.constraints = [];
    doc.ask = {};
    doc.lines = [];
  });
  const mine = store.told.patients.filter((p) => p.anatomy === anatomy);
  store.show({ patient: mine[mine.length - 1]?.id ?? null, other: null, compare: "off", selected: null, solo: null, cursor: [0, 0, 0] });
  void api.warm(anatomy).catch(() => {});
}

function start(): HTMLElement {
  const seed = h("input", { type: "number", min: 0, step: 1, value: 0, id: "start-seed", "aria-label": "seed of the phantom or generated patient", title: "Seed of the phantom or generated patient" });
  const number = () => Math.max(0, Math.floor(Number(seed.value)) || 0);
  const load = button("Phantom", () => startFromPhantom(number()), { icon: "person", id: "load-phantom", title: "Start from the phantom with this seed" });
  return h(
    "div",
    { class: "start", id: "start" },
    h("span", { class: "label" }, "Start from"),
    button("Nothing", () => store.show({ patient: null, other: null, compare: "off" }), { id: "start-nothing", title: "Show no patient; what is asked stays" }),
    h(
      "span",
      { class: "joined" },
      load,
      button("Generated", () => void generatePlain(number()), { icon: "play", id: "start-generated", title: "Start from a new patient of the model with this seed; nothing is asked of it" }),
      seed,
    ),
    button("Open", chooseFile, { icon: "upload", title: "Open a NIfTI label map, a spec or Slicer's boxes; or drop it on the page", id: "open-file" }),
  );
}

export function startFromPhantom(seed: number): void {
  const pressed = document.querySelector<HTMLButtonElement>("#load-phantom")!;
  pressed.disabled = true;
  api
    .phantom(store.doc.anatomy, seed)
    .then((p) => store.show({ patient: p.id, compare: "off" }))
    .catch((error: Error) => toast(error.message, "error"))
    .finally(() => (pressed.disabled = false));
}
