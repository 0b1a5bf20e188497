/** Colours of tissues: the anatomy's own, or a set that colour-blind people tell apart. */
import { store } from "./store";
import type { Anatomy, Tissue } from "./types";

/** Okabe and Ito 2008, then their mixtures with white and black: lightness differs where hue does not. */
const SAFE = [
  "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
  "#f5cf80", "#abdaf4", "#80cfb9", "#80b9d9", "#eaaf80", "#e6bcd3",
  "#735000", "#2b5a75", "#004f3a", "#003959", "#6b2f00", "#663d54", "#999999",
];

export function colours(anatomy: Anatomy): Map<string, string> {
  return new Map(
    anatomy.tissues.map((t, i) => [
      t.name,
      store.look(t.name, anatomy).colour ?? own(t, i),
    ]),
  );
}

/** The palette's colour of a tissue, as HTML writes it. */
export function own(t: Tissue, i: number): string {
  if (store.view.palette === "safe") return SAFE[i % SAFE.length]!;
  return `#${t.colour.map((x) => x.toString(16).padStart(2, "0")).join("")}`;
}

/** Targets and achieved shapes; the safe pair differs in lightness and is no tissue's colour. */
export function markColours(): { target: string; achieved: string } {
  return store.view.palette === "safe"
    ? { target: "#dc267f", achieved: store.view.theme === "dark" ? "#ffffff" : "#111111" }
    : { target: "#ff4d4f", achieved: "#2fbf5f" };
}
