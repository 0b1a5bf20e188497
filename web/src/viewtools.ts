/** What lies over the 3D view: tools, the divider of a comparison, who is shown, and what to do when nobody is. */
import { button, h, replace, say } from "./dom";
import { chooseFile } from "./opening";
import { current, generatePlain } from "./runpanel";
import { store, type View } from "./store";
import { startFromPhantom } from "./topbar";
import { verdict, WORDS } from "./verdict";

export function viewTools(resetViews: () => void): HTMLElement[] {
  const tools = [modes(resetViews), divider(), badge(), otherBadge("slider"), emptyState()];
  // The controls of the view capture every pointer that goes down on it; those on its tools are not theirs.
  for (const tool of tools) tool.addEventListener("pointerdown", (e) => e.stopPropagation());
  return tools;
}

function modes(resetViews: () => void): HTMLElement {
  const host = h("div", { class: "view-tools" });
  const draw = () => {
    const tool = (mode: View["mode"], name: string, key: string, icon: string) =>
      button(name, () => store.show({ mode }), { icon, text: false, pressed: store.view.mode === mode, title: `${name} the chosen box (${key})`, id: `mode-${mode}` });
    replace(
      host,
      tool("move", "Move", "M", "move"),
      tool("rotate", "Rotate", "R", "rotate"),
      tool("scale", "Resize", "S", "scale"),
      button("Ellipsoids", () => store.show({ ellipsoids: !store.view.ellipsoids }), { icon: "ellipsoid", text: false, pressed: store.view.ellipsoids, title: "Target (red) and achieved (green) ellipsoids", id: "ellipsoids" }),
      button("Reset views", resetViews, { icon: "home", text: false, title: "Look from the usual side again, at whole slices (0)", id: "reset-view" }),
    );
  };
  store.on(["view"], draw);
  draw();
  return host;
}

function divider(): HTMLElement {
  const bar = h("input", {
    type: "range", min: 0, max: 1, step: 0.005, class: "divider", id: "divider", "aria-label": "before and after",
    onInput: ((e: Event) => store.show({ divider: Number((e.target as HTMLInputElement).value) })) as EventListener,
  });
  const line = h("div", { class: "divider-line" });
  line.addEventListener("pointerdown", (e) => line.setPointerCapture(e.pointerId));
  line.addEventListener("pointermove", (e) => {
    if (!line.hasPointerCapture(e.pointerId)) return;
    const r = host.getBoundingClientRect();
    store.show({ divider: Math.min(Math.max((e.clientX - r.left) / r.width, 0), 1) });
  });
  const host = h("div", { class: "divider-host" }, line, bar);
  const draw = () => {
    host.hidden = store.view.compare !== "slider";
    bar.value = String(store.view.divider);
    line.style.left = `${store.view.divider * 100}%`;
  };
  store.on(["view", "cursor"], draw);
  draw();
  return host;
}

/** Who is shown, or what is being made. */
function badge(): HTMLElement {
  const host = h("div", { id: "badge" });
  const draw = () => {
    const step = current()?.steps.at(-1);
    const p = store.patient;
    const state = verdict(p);
    host.hidden = !p && !step;
    say(host, step ? `sampling · step ${step.step} of ${step.steps}` : `${p?.name ?? ""}${state ? ` · ${WORDS[state]}` : ""}`);
    host.className = `badge ${(!step && state) || ""}`;
  };
  store.on(["view", "patients", "jobs", "step"], draw);
  draw();
  return host;
}

/** Who is shown beside, or behind the slider. */
export function otherBadge(compare: View["compare"]): HTMLElement {
  const host = h("div", { class: "badge other" });
  const draw = () => {
    host.hidden = store.view.compare !== compare;
    say(host, store.told.patients.find((p) => p.id === store.view.other)?.name ?? "");
  };
  store.on(["view", "patients"], draw);
  draw();
  return host;
}

/** What to do when there is nobody to see. */
function emptyState(): HTMLElement {
  const seed = () => Math.max(0, Math.floor(Number(document.querySelector<HTMLInputElement>("#start-seed")?.value)) || 0);
  const host = h(
    "div",
    { class: "nobody", id: "nobody" },
    h("h2", {}, "Nobody here yet"),
    h("p", {}, "Start from a phantom, from a new patient of the model, or drop a NIfTI label map on the page. A target needs no patient: ask for a quantity and generate."),
    h(
      "div",
      { class: "line" },
      button("Phantom", () => startFromPhantom(seed()), { icon: "person", class: "primary" }),
      button("Generated", () => void generatePlain(seed()), { icon: "play" }),
      button("Open", chooseFile, { icon: "upload" }),
    ),
  );
  const draw = () => {
    host.hidden = store.reference !== null || current()?.state === "running" || !store.told.connected;
  };
  store.on(["view", "doc", "patients", "jobs"], draw);
  draw();
  return host;
}
