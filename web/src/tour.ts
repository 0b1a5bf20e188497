/** The first-run tour: five steps, each beside what it is about. */
import { button, h } from "./dom";
import { store } from "./store";

const STEPS: [string, string, string][] = [
  ["#start", "Start from someone", "Take a phantom, drop your own NIfTI label map on the page, or begin with nothing."],
  ["#domains-panel", "Say where", "Add a box and drag it in 3D or in the slices: move, rotate, or pull a face. It can snap to a tissue, an interface or a level."],
  ["#side-panel", "Say how much", "Pick a quantity. The histogram is the population: drag the target on it or type a number. What nobody has is said at once."],
  ["#generate-bar", "Watch it come", "Generate. The surface sharpens step by step, and the curves fall below the line when a target is met."],
  [".gallery", "Keep and compare", "Every patient stays here. Shift-click two to compare, download NIfTI, meshes, the report and the recipe. The Spec tab has it all as YAML."],
];

export function tour(): void {
  let at = 0;
  const card = h("div", { class: "tour", role: "dialog", "aria-modal": "false", "aria-label": "tour" });
  const ring = h("div", { class: "tour-ring" });
  const end = () => {
    card.remove();
    ring.remove();
    window.removeEventListener("keydown", keys);
    store.show({ toured: true });
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Escape") end();
  };
  const draw = () => {
    const [where, title, text] = STEPS[at]!;
    const r = document.querySelector(where)?.getBoundingClientRect() ?? new DOMRect(20, 60, 200, 100);
    Object.assign(ring.style, { left: `${r.left - 4}px`, top: `${r.top - 4}px`, width: `${r.width + 8}px`, height: `${r.height + 8}px` });
    card.replaceChildren(
      h("p", { class: "count" }, `${at + 1} of ${STEPS.length}`),
      h("h2", {}, title),
      h("p", {}, text),
      h(
        "div",
        { class: "line end" },
        button("Skip", end, { class: "quiet", id: "tour-skip" }),
        at ? button("Back", () => (at--, draw())) : null,
        button(at === STEPS.length - 1 ? "Begin" : "Next", () => (at === STEPS.length - 1 ? end() : (at++, draw())), { class: "primary", id: "tour-next" }),
      ),
    );
    const width = 300;
    const right = r.right + 16 + width < window.innerWidth;
    const left = right ? r.right + 16 : r.left - width - 20 > 0 ? r.left - width - 20 : Math.max(16, (window.innerWidth - width) / 2);
    const below = r.top > window.innerHeight * 0.6;
    Object.assign(card.style, {
      left: `${left}px`,
      top: below ? "auto" : `${Math.max(60, r.top + (right || left < r.left ? 0 : r.height + 16))}px`,
      bottom: below ? `${window.innerHeight - r.top + (right ? -r.height : 16)}px` : "auto",
    });
    (card.querySelector("#tour-next") as HTMLElement).focus();
  };
  document.body.append(ring, card);
  window.addEventListener("keydown", keys);
  draw();
}
