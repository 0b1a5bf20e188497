/** The page: panels around one stage, and the one place where events change what is remembered. */
import { api } from "./api";
import { h, replace } from "./dom";
import { domainsPanel } from "./domains";
import { acceptDrops } from "./opening";
import { gallery, pictures } from "./gallery";
import { generateBar, notice } from "./generatebar";
import { keyboard } from "./keyboard";
import { Model, models } from "./models";
import type { Frame } from "./frames";
import { quantitiesPanel } from "./quantities";
import { runPanel } from "./runpanel";
import { PLANES, SlicePane } from "./slices";
import { fillPalette, paletteTexture } from "./slicecolours";
import { Socket } from "./socket";
import { specPanel } from "./specpanel";
import { Stage } from "./stage";
import { store, type View } from "./store";
import { tissuesPanel } from "./tissues";
import { toast } from "./toasts";
import { choose, topbar } from "./topbar";
import { tour } from "./tour";
import type { Patient, ServerEvent } from "./types";
import { View3D } from "./view3d";
import { otherBadge, viewTools } from "./viewtools";
import "./style.css";

const views = h("div", { class: "views" });
const stage = new Stage(views);
const palette = paletteTexture();
const view = new View3D(stage);
const slices = PLANES.map((p) => new SlicePane(p, stage, palette, (going) => view.moves(going ? "box" : null)));

// ---- panels

function sidePanel(): HTMLElement {
  const bodies = { targets: quantitiesPanel(), spec: specPanel(), run: runPanel() };
  const names = { targets: "Quantities", spec: "Spec", run: "Run" };
  const tabs = h("div", { class: "tabs", role: "tablist" });
  const host = h("aside", { class: "side", id: "side-panel" }, tabs, ...Object.values(bodies));
  const draw = () => {
    const keys = Object.keys(names) as View["tab"][];
    replace(
      tabs,
      ...keys.map((key) =>
        h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-selected": String(store.view.tab === key), onClick: (() => store.show({ tab: key })) as EventListener }, names[key]),
      ),
    );
    for (const key of keys) bodies[key].hidden = store.view.tab !== key;
  };
  let last = "";
  store.on(["view"], () => {
    if (last !== store.view.tab) draw();
    last = store.view.tab;
  });
  draw();
  return host;
}

const offline = h("div", { class: "offline", role: "alert", hidden: true }, "The studio's server does not answer. If it was ended, start it again and open the address that it prints.");
const resetViews = () => {
  view.reset();
  store.show({ zoom: 1 });
};
view.element.append(...viewTools(resetViews), notice());
view.second.append(otherBadge("side"));
views.append(view.element, view.second, h("div", { class: "slices" }, ...slices.map((s) => s.element)));
document.querySelector("#app")!.append(
  topbar(),
  h("aside", { class: "leftbar" }, tissuesPanel(), domainsPanel()),
  h("main", {}, views, generateBar(), gallery()),
  sidePanel(),
  offline,
);

// ---- the server's events

const socket = new Socket(onEvent, onFrame, (connected) => {
  store.told.connected = connected;
  offline.hidden = connected;
  if (connected) void load();
});

function onEvent(event: ServerEvent): void {
  const { jobs } = store.told;
  if (event.type === "patient") addPatient(event.patient);
  else if (event.type === "forgotten") forget(event.patient);
  else if (event.type === "behind") void load();
  else {
    let job = jobs.find((j) => j.id === event.job);
    if (!job) {
      job = { id: event.job, state: "running", samples: store.doc.samples, steps: [], finished: 0, begun: performance.now() };
      jobs.push(job);
    }
    if (event.type === "started") job.state = "running";
    else if (event.type === "step") {
      job.steps.push(event);
      if (job.steps.length > 4000) job.steps.splice(0, 2000);
      return store.tell("step");
    } else {
      job.state = event.state;
      if (event.sentence !== undefined) job.sentence = event.sentence;
      if (event.state === "failed" && event.sentence) toast(event.sentence, "error");
      view.setLive(null);
    }
    store.tell("jobs");
  }
}

function addPatient(p: Patient): void {
  if (!store.told.patients.some((q) => q.id === p.id)) store.told.patients.push(p);
  const job = store.told.jobs.find((j) => j.id === p.job);
  if (job) {
    job.finished += 1;
    store.tell("jobs");
  }
  socket.show(p.id);
  if (job && p.anatomy === store.doc.anatomy) store.show({ patient: p.id });
  store.tell("patients");
}

function forget(id: string): void {
  store.told.patients = store.told.patients.filter((p) => p.id !== id);
  models.get(id)?.dispose();
  models.delete(id);
  pictures.delete(id);
  if (store.view.patient === id) store.show({ patient: null });
  if (store.view.other === id) store.show({ other: null, compare: "off" });
  store.tell("patients");
}

function onFrame(frame: Frame): void {
  const { type, patient, job } = frame.header;
  if (type === "surface") {
    const mine = store.told.jobs.find((j) => j.id === job);
    if (mine?.state === "running") {
      view.setLive(new Model(frame));
      mark("surface");
    }
    return;
  }
  if (!patient || models.has(patient)) return;
  models.set(patient, new Model(frame));
  repicture([patient]);
  shownChanged(true);
  store.tell("patients");
}

async function load(): Promise<void> {
  try {
    const known = await api.catalogue();
    Object.assign(store.told, known);
    if (!store.anatomy && store.told.anatomies[0]) choose(store.told.anatomies[0].name);
    const state = await api.state();
    store.told.patients = state.patients;
    for (const j of state.jobs)
      if (!store.told.jobs.some((k) => k.id === j.job))
        store.told.jobs.push({ id: j.job, state: j.state as "running", samples: j.samples, steps: [], finished: 0, begun: performance.now() });
    if (!store.patient) store.view.patient = null;
    for (const p of state.patients) if (!models.has(p.id)) socket.show(p.id);
    store.tell("doc", "view", "patients", "jobs");
    void api.warm(store.doc.anatomy).catch(() => {});
    if (!store.view.toured && !document.querySelector(".tour")) tour();
  } catch (error) {
    toast((error as Error).message, "error");
  }
}

// ---- what is asked, beside what is there: one request at a time, the last one counts

let asking = false;
async function plan(): Promise<void> {
  if (asking) return;
  asking = true;
  const { question } = store;
  try {
    const found = await api.plan(store.doc, store.reference);
    store.told.plan = found;
    store.told.problem = null;
  } catch (error) {
    store.told.problem = (error as Error).message;
  }
  asking = false;
  store.told.answered = question;
  store.tell("plan");
  // What was asked in the meantime is asked now, whatever changed it.
  if (!store.current) void plan();
}

async function values(): Promise<void> {
  const id = store.view.patient;
  if (!id || store.told.values[id]) return;
  try {
    store.told.values[id] = (await api.quantities(id)).values;
    store.tell("values");
  } catch (error) {
    toast((error as Error).message, "error");
  }
}

// ---- what is shown

let key = "";
function shownChanged(force = false): void {
  const now = [store.view.patient, store.view.other, store.view.compare, store.doc.anatomy].join();
  if (now !== key || force) {
    const changed = now !== key;
    key = now;
    const patient = models.get(store.reference ?? "") ?? null;
    const other = store.view.compare === "off" ? null : (models.get(store.view.other ?? "") ?? null);
    view.set(patient, other);
    if (patient && store.view.cursor.every((c) => c === 0)) store.view.cursor = patient.nearest();
    for (const slice of slices) slice.set(patient);
    if (changed) {
      void plan();
      void values();
    }
  }
  views.dataset.compare = store.view.compare;
  document.documentElement.dataset.theme = store.view.theme;
  repaint();
  redraw();
}

let painted = "";
function repaint(): void {
  const { looks, solo, palette: chosen } = store.view;
  const now = JSON.stringify([store.doc.anatomy, store.told.anatomies.length, looks, solo, chosen]);
  if (now === painted) return;
  painted = now;
  fillPalette(palette, (t) => store.look(t).visible && (solo === null || solo === t));
  view.repaint();
}

function redraw(): void {
  view.refresh();
  for (const slice of slices) slice.overlay();
  stage.invalidate();
}

function repicture(ids: Iterable<string>): void {
  for (const id of ids) {
    const model = models.get(id);
    const anatomy = store.named(store.told.patients.find((p) => p.id === id)?.anatomy);
    if (model && anatomy) pictures.set(id, view.thumbnail(model, anatomy));
  }
  view.repaint();
}

// Thumbnails follow the colours, a moment later: a colour that is being chosen changes many times.
let coloured = "";
let picturing = 0;
function recolour(): void {
  const own = Object.values(store.view.looks).map((all) => Object.entries(all).map(([t, look]) => [t, look.colour]));
  const now = JSON.stringify([store.view.palette, own]);
  if (now === coloured) return;
  const first = coloured === "";
  coloured = now;
  clearTimeout(picturing);
  if (first) return;
  picturing = window.setTimeout(() => {
    repicture(models.keys());
    store.tell("patients");
  }, 250);
}

store.on(["view", "patients"], () => {
  recolour();
  shownChanged();
});
store.on(["cursor"], () => {
  for (const slice of slices) slice.overlay();
  if (store.view.compare === "slider") view.repaint();
  stage.invalidate();
});
store.on(["doc"], () => {
  void plan();
  redraw();
});
store.on(["plan"], redraw);
new ResizeObserver(() => redraw()).observe(views);

function mark(name: string): void {
  performance.mark(`studio-${name}`);
}

keyboard(resetViews);
acceptDrops();
shownChanged(true);
// For tests and measurements: what is shown, and where.
Object.assign(window, { studio: { store, stage, view, slices, models } });
