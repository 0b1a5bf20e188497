/** The spec as YAML, editable both ways, and the command line that does the same. */
import { api, save, type Refused } from "./api";
import { button, h, say } from "./dom";
import { store } from "./store";
import { toast } from "./toasts";

export function specPanel(): HTMLElement {
  const text = h("textarea", { id: "yaml", spellcheck: false, "aria-label": "the spec as YAML", placeholder: "Nothing is asked yet. Place a domain, type a target, or paste a spec." });
  const problem = h("p", { class: "problem", role: "alert", id: "yaml-problem" });
  const line = h("code", { id: "command" });
  let mine = false;
  let timer = 0;
  const read = async () => {
    try {
      const plan = await api.plan(store.doc, store.reference, text.value);
      problem.textContent = "";
      const spec = plan.spec;
      store.edit((doc) => {
        doc.constraints = spec?.constraints ?? [];
        doc.ask = plan.asks;
        doc.lines = plan.lines;
        if (spec?.name) doc.name = spec.name;
        if (spec?.anatomy) doc.anatomy = spec.anatomy;
      }, "yaml");
    } catch (error) {
      problem.textContent = (error as Refused).message;
    }
  };
  text.addEventListener("input", () => {
    mine = true;
    clearTimeout(timer);
    timer = window.setTimeout(() => void read(), 350);
  });
  text.addEventListener("blur", () => {
    mine = false;
    store.endGesture();
  });
  const draw = () => {
    const plan = store.told.plan;
    if (!mine && plan && text.value !== plan.yaml) text.value = plan.yaml;
    if (!mine) say(problem, store.told.problem ?? "");
    say(line, plan?.command ?? "");
  };
  store.on(["plan"], draw);
  draw();
  return h(
    "section",
    { class: "panel-part grow spec" },
    h(
      "div",
      { class: "line" },
      tasks(),
      button("Save", () => save("spec.yaml", new Blob([text.value], { type: "text/yaml" })), { icon: "download", class: "small", title: "Save the spec as YAML" }),
    ),
    text,
    problem,
    h("h3", {}, "The same on the command line"),
    h("div", { class: "command" }, line, button("Copy the command", () => void copy(line.textContent ?? ""), { icon: "copy", text: false, class: "quiet tiny" })),
  );
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("The browser does not let this page copy; select the text instead.", "error");
  }
}

/** The paper's tasks, to begin with. */
function tasks(): HTMLElement {
  const select = h("select", { "aria-label": "begin with one of the paper's tasks", id: "task" });
  let of = "";
  const draw = () => {
    if (of === store.anatomy?.name) return;
    of = store.anatomy?.name ?? "";
    select.replaceChildren(
      h("option", { value: "" }, "Begin with a task …"),
      ...(store.anatomy?.tasks ?? []).map((t) => h("option", { value: t.name, title: t.description }, t.name)),
    );
  };
  select.addEventListener("change", () => {
    const name = select.value;
    if (!name) return;
    api
      .task(name)
      .then((spec) => {
        store.edit((doc) => {
          doc.constraints = spec.constraints;
          doc.ask = {};
          doc.lines = [];
          doc.name = spec.name;
        });
        store.show({ selected: null });
        select.value = "";
      })
      .catch((error: Error) => toast(error.message, "error"));
  });
  store.on(["doc", "patients"], draw);
  draw();
  return select;
}
