/** A population as a histogram, with the value and a target that is dragged or moved by arrow keys. */
import { shown, svg } from "./dom";
import type { Ask, Quantity } from "./types";

const W = 268;
const H = 60;
const TOP = 9;
const FLOOR = 44;
/** A target far away must not squeeze the population: from this share of its width beyond it, marks stay at the edge. */
const BEYOND = 0.35;

export interface HistogramOptions {
  quantity: Quantity;
  quantiles: number[];
  value: number | null;
  ask: Ask | undefined;
  onTarget: (value: number, high: number | undefined, done: boolean) => void;
}

/** From quantiles at even percentages: a step of 5 % of the patients between each two. */
export function histogram({ quantity, quantiles: q, value, ask, onTarget }: HistogramOptions): SVGElement {
  const marks = [value, ask?.value, ask?.high].filter((x): x is number => x !== undefined && x !== null);
  const spread = Math.max(q[q.length - 1]! - q[0]!, 1e-6);
  const least = Math.min(q[0]! - 0.08 * spread, ...marks.map((m) => m - 0.03 * spread));
  const most = Math.max(q[q.length - 1]! + 0.08 * spread, ...marks.map((m) => m + 0.03 * spread));
  const low = Math.max(least, q[0]! - BEYOND * spread);
  const high = Math.min(most, q[q.length - 1]! + BEYOND * spread);
  const x = (v: number) => Math.min(Math.max(((v - low) / (high - low)) * W, 5), W - 5);
  const back = (px: number) => low + (px / W) * (high - low);
  const made = svg("svg", {
    class: "histogram",
    viewBox: `0 0 ${W} ${H}`,
    role: "slider",
    tabindex: 0,
    "data-focus": `histogram-${quantity.key}`,
    "aria-label": `target of ${quantity.key}`,
    "aria-valuemin": q[0],
    "aria-valuemax": q[q.length - 1],
    "aria-valuenow": ask?.value ?? value ?? q[10],
  });
  made.append(svg("path", { d: area(q, x), class: "population" }));
  let free = -1;
  for (const [i, name] of [[1, "p5"], [10, "p50"], [19, "p95"]] as const) {
    const at = x(q[i]!);
    made.append(svg("line", { x1: at, x2: at, y1: FLOOR, y2: FLOOR + 4, class: "tick" }));
    const text = `${name} ${shown(q[i]!)}`;
    const half = 2.7 * text.length;
    const middle = Math.min(Math.max(at, half), W - half);
    if (middle - half < free) continue; // a narrow population has no room for all three
    free = middle + half;
    made.append(svg("text", { x: middle, y: H - 4, class: "tick-text" }, text));
  }
  if (value !== null) made.append(svg("line", { x1: x(value), x2: x(value), y1: TOP, y2: FLOOR, class: "value" }));
  if (ask) made.append(...target(ask, x));
  drag(made, ask, back, onTarget);
  return made;
}

function area(q: number[], x: (v: number) => number): string {
  const widths = q.slice(1).map((b, i) => Math.max(b - q[i]!, (q[q.length - 1]! - q[0]!) / 400));
  const heights = widths.map((w) => 1 / w);
  const smooth = heights.map((_, i) => {
    const near = heights.slice(Math.max(0, i - 1), i + 2);
    return near.reduce((a, b) => a + b, 0) / near.length;
  });
  const top = Math.max(...smooth);
  let d = `M ${x(q[0]!)} ${FLOOR}`;
  smooth.forEach((height, i) => {
    const y = FLOOR - (FLOOR - TOP - 2) * (height / top);
    d += ` L ${x((q[i]! + q[i + 1]!) / 2)} ${y}`;
  });
  return `${d} L ${x(q[q.length - 1]!)} ${FLOOR} Z`;
}

function target(ask: Ask, x: (v: number) => number): SVGElement[] {
  const ends = ask.how === "range" ? [ask.value, ask.high ?? ask.value] : [ask.value];
  const made = ends.map((v) =>
    svg("path", { d: `M ${x(v)} ${TOP} l -5 -8 h 10 z M ${x(v)} ${TOP} V ${FLOOR}`, class: "target" }),
  );
  const [a, b] =
    ask.how === "range" ? [x(ends[0]!), x(ends[1]!)] : ask.how === "least" ? [x(ends[0]!), W] : ask.how === "most" ? [0, x(ends[0]!)] : [0, 0];
  if (b > a) made.unshift(svg("rect", { x: a, width: b - a, y: TOP, height: FLOOR - TOP, class: "allowed" }));
  return made;
}

function drag(
  made: SVGElement,
  ask: Ask | undefined,
  back: (px: number) => number,
  onTarget: HistogramOptions["onTarget"],
): void {
  const send = (v: number, done: boolean) => {
    if (ask?.how !== "range" || ask.high === undefined) return onTarget(v, undefined, done);
    const lower = Math.abs(v - ask.value) < Math.abs(v - ask.high);
    onTarget(lower ? Math.min(v, ask.high) : ask.value, lower ? ask.high : Math.max(v, ask.value), done);
  };
  made.addEventListener("pointerdown", (e) => {
    // Each move draws the panel anew, so the window follows the pointer and the first place counts.
    const r = made.getBoundingClientRect();
    const place = (m: PointerEvent) => Number(back(((m.clientX - r.left) / r.width) * W).toPrecision(4));
    const moved = (m: PointerEvent) => send(place(m), false);
    const up = (m: PointerEvent) => {
      window.removeEventListener("pointermove", moved);
      window.removeEventListener("pointerup", up);
      send(place(m), true);
    };
    window.addEventListener("pointermove", moved);
    window.addEventListener("pointerup", up);
    e.preventDefault();
    made.focus();
  });
  made.addEventListener("keydown", (e) => {
    const more = e.key === "ArrowRight" || e.key === "ArrowUp";
    const less = e.key === "ArrowLeft" || e.key === "ArrowDown";
    if (!more && !less) return;
    e.preventDefault();
    const now = Number(made.getAttribute("aria-valuenow"));
    const step = ((more ? 1 : -1) * (back(W) - back(0))) / 100;
    const next = Number((now + step).toPrecision(4));
    onTarget(ask?.how === "range" ? Math.min(next, ask.high ?? next) : next, ask?.high, true);
  });
}
