/** The bar under the views: how many patients, which seed, go and stop. */
import { button, h, replace, say } from "./dom";
import { current, generate, stop } from "./runpanel";
import { store } from "./store";
import type { Constraint } from "./types";

export function generateBar(): HTMLElement {
  const go = h("div", { class: "go" });
  const draw = () => {
    const busy = current() !== undefined;
    replace(
      go,
      busy ? button("Cancel", stop, { icon: "stop", class: "danger", id: "cancel" }) : null,
      button("Generate", () => void generate(), { icon: "play", class: "primary", id: "generate", title: "Generate (Ctrl+Enter)" }),
    );
  };
  store.on(["jobs"], draw);
  draw();
  const asked = h("span", { class: "asked-count", id: "asked" });
  const count = () => {
    const n = store.doc.constraints.filter(asks).length + Object.keys(store.doc.ask).length + store.doc.lines.length;
    say(asked, n ? `${n} asked` : "nothing asked");
    asked.hidden = current() !== undefined; // its place is the Cancel button's
  };
  store.on(["doc", "jobs"], count);
  count();
  return h(
    "div",
    { class: "generate-bar", id: "generate-bar" },
    field("Patients", "samples", 1, 64),
    field("Seed", "seed", 0, 2 ** 53 - 1),
    field("Steps", "steps", 1, 1000),
    reference(),
    h("span", { class: "space" }),
    asked,
    go,
  );
}

/** What keeps the spec from being generated, over the foot of the view: said before someone presses Generate. */
export function notice(): HTMLElement {
  const host = h("p", { class: "notice", id: "notice", role: "status" });
  const draw = () => {
    const { problem } = store.told;
    const said = problem ?? idle();
    host.hidden = said === null;
    host.classList.toggle("problem", problem !== null);
    say(host, said ?? "");
  };
  store.on(["doc", "plan"], draw);
  draw();
  return host;
}

/** Whether a domain has a target, typed or taken from the shown patient. */
function asks(c: Constraint): boolean {
  return c.match?.length !== 0 || Object.values(c.target ?? {}).some((v) => v !== undefined);
}

/** A domain that asks for nothing is refused. */
function idle(): string | null {
  const free = store.doc.constraints.find((c) => !asks(c));
  return free ? `“${free.name}” asks for nothing yet: type a target before you generate.` : null;
}

function field(name: string, key: "samples" | "seed" | "steps", least: number, most: number): HTMLElement {
  const input = h("input", {
    type: "number",
    min: least,
    max: most,
    step: 1,
    id: `field-${key}`,
    placeholder: key === "steps" ? "auto" : "",
    onChange: (() => {
      const v = Math.floor(Number(input.value));
      const fits = input.value !== "" && Number.isFinite(v);
      store.edit((doc) => {
        if (key === "steps") doc.steps = fits ? Math.min(Math.max(v, least), most) : null;
        else doc[key] = fits ? Math.min(Math.max(v, least), most) : least;
      });
    }) as EventListener,
  });
  const draw = () => {
    const v = store.doc[key];
    const text = v === null ? "" : String(v);
    if (document.activeElement !== input && input.value !== text) input.value = text;
  };
  store.on(["doc"], draw);
  draw();
  return h("label", {}, name, input);
}

/** Whether domains and open targets are taken from the shown patient. */
function reference(): HTMLElement {
  const box = h("input", {
    type: "checkbox",
    id: "field-reference",
    onChange: (() => store.edit((doc) => void (doc.reference = box.checked))) as EventListener,
  });
  const draw = () => {
    box.checked = store.doc.reference;
    box.disabled = store.reference === null;
  };
  store.on(["doc", "view", "patients"], draw);
  draw();
  return h("label", { title: "Domains that follow tissues, and targets left open, are taken from the shown patient" }, box, "Like the shown one");
}
