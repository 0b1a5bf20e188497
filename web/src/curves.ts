/** Live curves: every error in tolerances, step by step; below the line it is met. */
import { svg } from "./dom";
import type { Check, StepEvent } from "./types";

const W = 280;
const H = 150;
const TOP = 100;
const LEAST = 0.05;
const COLOURS = ["#56b4e9", "#e69f00", "#cc79a7", "#009e73", "#d55e00", "#0072b2", "#b8a800", "#999999"];

export interface Line {
  name: string;
  colour: string;
  points: [number, number][];
  /** Whether the last point is the certificate's. */
  certified: boolean;
}

/** Every error step by step; what is finished ends with its certificate, the worst of a constraint's domains. */
export function lines(steps: StepEvent[], checks: Check[] = []): Line[] {
  const found = new Map<string, Line>();
  const owners = new Map<string, (c: Check) => boolean>();
  for (const event of steps)
    for (const e of event.errors) {
      const name = e.quantity ? `${e.constraint} · ${e.quantity}` : e.constraint;
      if (!found.has(name)) {
        found.set(name, { name, colour: COLOURS[found.size % COLOURS.length]!, points: [], certified: false });
        owners.set(name, (c) => c.constraint === e.constraint && (!e.quantity || c.quantity === e.quantity));
      }
      found.get(name)!.points.push([event.step, e.in_tolerances]);
    }
  for (const [name, line] of found) {
    const own = checks.filter(owners.get(name)!);
    if (!own.length) continue;
    line.points.push([steps[steps.length - 1]!.steps, Math.max(...own.map((c) => c.in_tolerances))]);
    line.certified = true;
  }
  return [...found.values()];
}

export function curves(steps: StepEvent[], drawn: Line[]): SVGElement {
  const count = Math.max(steps[steps.length - 1]?.steps ?? 1, 2);
  const x = (step: number) => 30 + ((step - 1) / (count - 1)) * (W - 38);
  const y = (v: number) => {
    const share = Math.log(Math.min(Math.max(v, LEAST), TOP) / LEAST) / Math.log(TOP / LEAST);
    return H - 18 - share * (H - 26);
  };
  const made = svg("svg", { class: "curves", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "errors in tolerances by step" });
  made.append(svg("rect", { x: 30, width: W - 38, y: y(1), height: H - 18 - y(1), class: "met-zone" }));
  for (const v of [0.1, 1, 10, 100])
    made.append(
      svg("line", { x1: 30, x2: W - 8, y1: y(v), y2: y(v), class: v === 1 ? "one" : "grid" }),
      svg("text", { x: 26, y: y(v) + 3, class: "axis" }, String(v)),
    );
  made.append(svg("text", { x: W - 8, y: H - 4, class: "axis" }, `step ${steps[steps.length - 1]?.step ?? 0} of ${count}`));
  for (const line of drawn) {
    const d = line.points.map(([s, v], i) => `${i ? "L" : "M"} ${x(s).toFixed(1)} ${y(v).toFixed(1)}`).join(" ");
    const path = svg("path", { d, class: "curve" });
    path.style.stroke = line.colour;
    made.append(path);
    for (const [s, v] of line.points.length < 12 ? line.points : []) {
      const dot = svg("circle", { cx: x(s), cy: y(v), r: 2.5 });
      dot.style.fill = line.colour;
      made.append(dot);
    }
    if (line.certified) {
      const [s, v] = line.points[line.points.length - 1]!;
      const ring = svg("circle", { cx: x(s), cy: y(v), r: 4, class: "certified" });
      ring.style.stroke = line.colour;
      made.append(ring);
    }
  }
  return made;
}
