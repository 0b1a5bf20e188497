/** Generate: how many, which seed, what happens now, and what came of it. */
import { api } from "./api";
import { curves, lines } from "./curves";
import { h, replace, shown } from "./dom";
import { store, type Job } from "./store";
import { toast } from "./toasts";
import type { Check, Doc } from "./types";
import { verdict, WORDS } from "./verdict";

export function generate(): Promise<void> {
  return draw(store.doc, store.reference);
}

/** One patient of whom nothing is asked, to start from. */
export function generatePlain(seed: number): Promise<void> {
  return draw({ ...store.doc, constraints: [], ask: {}, lines: [], samples: 1, seed }, null);
}

async function draw(doc: Doc, reference: string | null): Promise<void> {
  try {
    const { job } = await api.generate(doc, reference);
    const { samples } = doc;
    // The server may have told of its start already.
    if (!store.told.jobs.some((j) => j.id === job))
      store.told.jobs.push({ id: job, state: "waiting", samples, steps: [], finished: 0, begun: performance.now() });
    store.show({ tab: "run" });
    store.tell("jobs");
  } catch (error) {
    toast((error as Error).message, "error");
  }
}

export function current(): Job | undefined {
  return store.told.jobs.find((j) => j.state === "running") ?? store.told.jobs.find((j) => j.state === "waiting");
}

export function stop(): void {
  const job = current();
  if (job) void api.cancel(job.id).catch((error: Error) => toast(error.message, "error"));
}

export function runPanel(): HTMLElement {
  const now = h("div", { class: "now-running", id: "running" });
  const result = h("div", { class: "result", id: "result" });
  let waiting = false;
  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawNow(now);
    });
  };
  const outcome = () => drawResult(result);
  store.on(["step", "jobs", "patients"], draw);
  store.on(["view", "patients", "jobs"], outcome);
  drawNow(now);
  outcome();
  return h("section", { class: "panel-part grow" }, now, result);
}

function drawNow(host: HTMLElement): void {
  const job = current() ?? store.told.jobs[store.told.jobs.length - 1];
  if (!job) return replace(host, h("p", { class: "hint" }, "Press Generate. Each step's errors appear here, in tolerances: what falls below the line is met."));
  const last = job.steps[job.steps.length - 1];
  const mine = last ? job.steps.filter((s) => s.seed === last.seed && s.turn === last.turn) : [];
  const made = last && store.told.patients.find((p) => p.job === job.id && p.seed === last.seed);
  const drawn = lines(mine, made?.checks);
  const going = job.state === "running" || job.state === "waiting";
  const done = last ? (job.finished + last.step / last.steps) / job.samples : 0;
  const bar = h("div", { class: "bar" }, h("div", { class: "fill" }));
  (bar.firstElementChild as HTMLElement).style.width = `${Math.min(100, 100 * (going ? done : 1))}%`;
  replace(
    host,
    h(
      "p",
      { class: `state ${job.state}`, id: "job-state" },
      label(job),
      last && going ? h("span", { class: "hint" }, ` seed ${last.seed}${last.turn ? `, draw ${last.turn + 1}` : ""}`) : null,
    ),
    job.sentence ? h("p", { class: "problem", role: "alert" }, job.sentence) : null,
    going ? bar : null,
    drawn.length ? curves(mine, drawn) : null,
    h(
      "ul",
      { class: "legend" },
      ...drawn.map((line) => {
        const value = line.points[line.points.length - 1]![1];
        const dot = h("span", { class: "swatch" });
        dot.style.background = line.colour;
        return h("li", {}, dot, h("span", { class: "name" }, line.name), h("span", { class: `number ${value <= 1 ? "met" : ""}` }, `${line.certified ? "certified " : ""}${value.toFixed(2)} tol.`));
      }),
    ),
  );
}

function label(job: Job): string {
  const names = { waiting: "Waiting", running: "Sampling", done: "Finished", cancelled: "Cancelled", failed: "Failed" };
  return `${names[job.state]} · ${job.finished} of ${job.samples}`;
}

function drawResult(host: HTMLElement): void {
  const patient = store.patient;
  const job = current();
  const found = verdict(patient);
  // While something is sampled, the verdict on an earlier patient would be taken for its.
  if (!patient || !found || (job && job.id !== patient.job)) return replace(host);
  const checks = patient.checks ?? [];
  const words = found !== "valid" ? WORDS[found] : checks.length ? "valid: met and plausible" : "plausible";
  replace(
    host,
    h("h3", { class: `verdict ${found}`, id: "verdict", "data-verdict": found }, `${words[0]!.toUpperCase()}${words.slice(1)}`),
    h("p", { class: "hint" }, `${patient.name} · ${shown(patient.seconds)} s${(patient.drawn ?? 1) > 1 ? ` · best of ${patient.drawn} draws` : ""}`),
    checks.length ? table(checks) : null,
    ...(patient.unusual ?? []).slice(0, 4).map((odd) => h("p", { class: "warning" }, String(odd.sentence ?? odd.what ?? JSON.stringify(odd)))),
  );
}

/** What an ask of a named quantity is called in a certificate, and as a sign before the value. */
const SIGNS: Record<string, string> = { "equal to": "", between: "", "at least": "≥ ", "at most": "≤ " };

function table(checks: Check[]): HTMLElement {
  const text = (x: number | number[], unit: string, between: string) => `${Array.isArray(x) ? x.map(shown).join(between) : shown(x)} ${unit}`.trim();
  const row = (c: Check) => {
    const sign = SIGNS[c.quantity];
    const name = sign === undefined ? `${c.constraint} · ${c.quantity}` : c.constraint;
    return h(
      "tr",
      { class: c.met ? "met" : "unmet", title: c.note },
      h("th", { scope: "row" }, `${c.met ? "✓" : "✗"} ${name}${c.domains > 1 ? ` ${c.domain + 1}` : ""}`),
      h("td", {}, `${sign ?? ""}${text(c.requested, c.unit, c.quantity === "between" ? " to " : ", ")}`),
      h("td", {}, text(c.achieved, c.unit, ", ")),
    );
  };
  return h(
    "table",
    { class: "checks" },
    h("thead", {}, h("tr", {}, ...["", "asked", "achieved"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, ...checks.slice(0, 40).map(row)),
  );
}
