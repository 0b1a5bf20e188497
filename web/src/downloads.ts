/** Files out: of the shown patient, and boxes for 3D Slicer. */
import { api, save } from "./api";
import { button, h, icon } from "./dom";
import { store } from "./store";
import { toast } from "./toasts";
import type { Box } from "./types";

const KINDS: [string, string][] = [
  ["nifti", "NIfTI label map"],
  ["gltf", "Mesh, glTF"],
  ["stl", "Meshes, STL"],
  ["report", "Report (HTML)"],
  ["recipe", "Recipe (report.json)"],
];

export function downloadMenu(): HTMLElement {
  const menu = h("div", { class: "menu" });
  const details = h("details", { class: "dropdown up" }, h("summary", { id: "downloads" }, icon("download"), "Download"), menu);
  const draw = () => {
    const patient = store.patient;
    menu.replaceChildren(
      ...KINDS.map(([kind, name]) =>
        button(
          name,
          () => {
            if (patient) save("", `/api/patient/${patient.id}/${kind}`);
            details.open = false;
          },
          { disabled: !patient || (patient.seed === undefined && (kind === "report" || kind === "recipe")), id: `download-${kind}` },
        ),
      ),
      button("Boxes for 3D Slicer", () => void toSlicer(), { id: "download-markups", disabled: !boxes().length }),
    );
  };
  details.addEventListener("toggle", draw);
  document.addEventListener("pointerdown", (e) => {
    if (!details.contains(e.target as Node)) details.open = false;
  });
  details.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !details.open) return;
    e.stopPropagation(); // or it would also let go of the chosen box
    details.open = false;
    details.querySelector("summary")!.focus();
  });
  draw();
  return details;
}

function boxes(): (Box & { name: string })[] {
  return store.doc.constraints
    .filter((c) => c.domain.family === "box" && c.domain.centre_mm)
    .map((c) => ({
      name: c.name,
      centre_mm: c.domain.centre_mm!,
      size_mm: c.domain.size_mm!,
      rotation_deg: c.domain.rotation_deg ?? [0, 0, 0],
    }));
}

async function toSlicer(): Promise<void> {
  try {
    const content = await api.writeMarkups(boxes());
    save("domains.mrk.json", new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
  } catch (error) {
    toast((error as Error).message, "error");
  }
}
