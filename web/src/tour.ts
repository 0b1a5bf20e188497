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
    window.removeEventListener("keydown", keys, true);
    store.show({ toured: true });
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key !== "Escape") return;
    e.stopImmediatePropagation(); // to the page, Escape means something else
    end();
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
    const [left, top] = beside(r, card.offsetWidth, card.offsetHeight);
    Object.assign(card.style, { left: `${left}px`, top: `${top}px` });
    (card.querySelector("#tour-next") as HTMLElement).focus();
  };
  document.body.append(ring, card);
  window.addEventListener("keydown", keys, true);
  draw();
}

/** Below what is at the top of the window, above what is at its foot, else beside it: never over it. */
function beside(r: DOMRect, width: number, height: number): [number, number] {
  const gap = 16;
  const within = (x: number, size: number, room: number) => Math.min(Math.max(x, gap), room - size - gap);
  const { innerWidth, innerHeight } = window;
  if (r.bottom < innerHeight * 0.25) return [within(r.left, width, innerWidth), r.bottom + gap];
  if (r.top > innerHeight * 0.6) return [within(r.left, width, innerWidth), r.top - height - gap];
  const right = r.right + gap;
  return [right + width < innerWidth ? right : r.left - width - gap, within(r.top, height, innerHeight)];
}
