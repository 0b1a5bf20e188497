/** Files in: NIfTI, specs and Slicer's Markups, by a button or dropped on the page. */
import { api, Refused } from "./api";
import { button, h } from "./dom";
import { addBox } from "./snapping";
import { store } from "./store";
import { toast } from "./toasts";

const MOST_BYTES = 256 * 2 ** 20;

export function chooseFile(): void {
  const input = h("input", { type: "file", accept: ".nii,.gz,.json,.yaml,.yml" });
  input.addEventListener("change", () => {
    if (input.files?.[0]) void openFile(input.files[0]);
  });
  input.click();
}

/** `mapping` says which tissues its labels are, if the file itself does not. */
export async function openFile(file: File, mapping?: string): Promise<void> {
  try {
    if (file.name.endsWith(".json")) await markups(file);
    else if (/\.ya?ml$/.test(file.name)) await spec(file);
    else if (file.size > MOST_BYTES) toast(`${file.name} has more than 256 MB; crop it first.`, "error");
    else await nifti(file, mapping);
  } catch (error) {
    toast((error as Error).message.replace(/^the file\b/, file.name), "error");
  }
}

async function nifti(file: File, mapping?: string): Promise<void> {
  try {
    const patient = await api.upload(store.doc.anatomy, file, mapping);
    store.show({ patient: patient.id, compare: "off" });
  } catch (error) {
    if (error instanceof Refused && error.status === 409) return ask(file, error);
    throw error;
  }
}

async function spec(file: File): Promise<void> {
  const plan = await api.plan(store.doc, store.reference, await file.text());
  store.edit((doc) => {
    doc.constraints = plan.spec?.constraints ?? [];
    doc.ask = plan.asks;
    doc.lines = plan.lines;
    if (plan.spec?.anatomy) doc.anatomy = plan.spec.anatomy;
  });
}

async function markups(file: File): Promise<void> {
  let content: unknown;
  try {
    content = JSON.parse(await file.text());
  } catch {
    return toast(`${file.name} is not JSON.`, "error");
  }
  const { boxes } = await api.readMarkups(content);
  for (const { name, ...box } of boxes) addBox(box, undefined, name);
  toast(`${boxes.length} ${boxes.length === 1 ? "box" : "boxes"} from ${file.name}.`);
}

/** Which tissue each label of the file is. */
function ask(file: File, refused: Refused): void {
  const labels = refused.body.labels as { id: number; name: string | null; voxels: number }[];
  const vocabularies = refused.body.vocabularies as string[];
  const tissues = store.anatomy?.tissues ?? [];
  const selects = labels.map((label) =>
    h(
      "select",
      { "aria-label": `tissue of label ${label.id}`, "data-label": label.id },
      h("option", { value: "background" }, "leave out"),
      ...tissues.map((t) => h("option", { value: t.name }, `${t.name} · ${t.full_name}`)),
    ),
  );
  const vocabulary = h("select", { "aria-label": "vocabulary" }, h("option", { value: "" }, "as chosen below"), ...vocabularies.map((v) => h("option", { value: v }, v)));
  const dialog = h(
    "dialog",
    { class: "mapping", id: "mapping", "aria-label": "label mapping" },
    h("h2", {}, "Which tissues are these labels?"),
    h("p", { class: "hint" }, `${refused.message[0]?.toUpperCase()}${refused.message.slice(1)}.`),
    h("label", { class: "line" }, h("span", { class: "label" }, "Vocabulary"), vocabulary),
    h(
      "div",
      { class: "labels" },
      ...labels.map((label, i) =>
        h("label", { class: "line" }, h("span", { class: "label" }, `${label.id}${label.name ? ` · ${label.name}` : ""}`), selects[i]!, h("span", { class: "now" }, `${label.voxels} voxels`)),
      ),
    ),
    h(
      "div",
      { class: "line end" },
      button("Cancel", () => dialog.close()),
      button(
        "Open",
        () => {
          const mapping = vocabulary.value || JSON.stringify(Object.fromEntries(labels.map((l, i) => [l.id, selects[i]!.value])));
          dialog.close();
          void openFile(file, mapping);
        },
        { class: "primary", id: "mapping-open" },
      ),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function acceptDrops(): void {
  const cover = h("div", { class: "drop-cover", hidden: true }, h("p", {}, "Drop a NIfTI label map, a spec (.yaml) or Slicer's boxes (.mrk.json)"));
  document.body.append(cover);
  window.addEventListener("dragover", (e) => {
    e.preventDefault();
    cover.hidden = false;
  });
  window.addEventListener("dragleave", (e) => {
    if (e.relatedTarget === null) cover.hidden = true;
  });
  window.addEventListener("drop", (e) => {
    e.preventDefault();
    cover.hidden = true;
    const file = e.dataTransfer?.files[0];
    if (file) void openFile(file);
  });
}
