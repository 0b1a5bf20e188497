/** Keys: everything that the mouse does with the chosen box, and the usual ones. */
import { remove } from "./domains";
import { generate, stop } from "./runpanel";
import { addBox } from "./snapping";
import { store } from "./store";
import type { Vec3 } from "./types";

const MOVES: Record<string, Vec3> = {
  ArrowLeft: [1, 0, 0],
  ArrowRight: [-1, 0, 0],
  ArrowUp: [0, 0, 1],
  ArrowDown: [0, 0, -1],
  PageUp: [0, 1, 0],
  PageDown: [0, -1, 0],
};

export const HELP = [
  "B add a box · M move, R rotate, S size · arrows and Page keys shift the chosen box by 1 mm (Shift: 5 mm)",
  "Delete removes it · Ctrl+Z, Ctrl+Y undo and redo · Ctrl+Enter generates · 0 resets the views, Ctrl+wheel enlarges slices · Esc cancels or lets go",
].join("\n");

export function keyboard(resetViews: () => void): void {
  window.addEventListener("keydown", (e) => {
    const typing = (e.target as HTMLElement).closest("input, textarea, select, dialog, [role=slider]");
    const control = e.ctrlKey || e.metaKey;
    if (control && e.key === "Enter") void generate();
    else if (typing) return;
    else if (control && e.key.toLowerCase() === "z" && !e.shiftKey) store.undo();
    else if (control && (e.key.toLowerCase() === "y" || (e.shiftKey && e.key.toLowerCase() === "z"))) store.redo();
    else if (control || e.altKey) return;
    else if (e.key === "b") addBox();
    else if (e.key === "m") store.show({ mode: "move" });
    else if (e.key === "r") store.show({ mode: "rotate" });
    else if (e.key === "s") store.show({ mode: "scale" });
    else if (e.key === "0") resetViews();
    else if (e.key === "Escape") escape();
    else if (!withChosen(e)) return;
    e.preventDefault();
  });
}

function escape(): void {
  if (store.view.selected !== null) store.show({ selected: null });
  else stop();
}

function withChosen(e: KeyboardEvent): boolean {
  const chosen = store.view.selected;
  if (chosen === null) return false;
  if (e.key === "Delete" || e.key === "Backspace") return remove(chosen), true;
  const way = MOVES[e.key];
  const domain = store.doc.constraints[chosen]?.domain;
  if (!way || !domain?.centre_mm) return false;
  const step = e.shiftKey ? 5 : 1;
  store.edit((doc) => {
    const d = doc.constraints[chosen]!.domain;
    d.centre_mm = d.centre_mm!.map((x, k) => x + step * way[k]!) as Vec3;
  });
  return true;
}
