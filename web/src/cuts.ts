/** Boxes as a slice shows them: polygons that can be taken hold of at corners, edges and inside. */
import { shared, type Corner, type Face } from "./boxes";
import type { Point } from "./ink";

/** Pixels of an edge that has room for a grip of its own between its corners'. */
const ROOM = 26;
/** Pixels from a corner within which a pointer takes hold of it. */
const REACH = 8;

/** A box in a slice: its number, and the polygon in RAS mm with its faces and in pixels. */
export interface Cut {
  box: number;
  chosen: boolean;
  corners: Corner[];
  points: Point[];
}

/** What a pointer takes hold of: these faces of a box, or without any the whole box. */
export interface Hold {
  box: number;
  faces: Face[];
  cursor: string;
}

/** A corner or an edge of the chosen box, or the inside of any; the last of the cuts lies on top. */
export function hold(p: Point, cuts: Cut[]): Hold | null {
  for (const { box, chosen, corners, points } of [...cuts].reverse()) {
    const n = points.length;
    if (chosen) {
      const middle: Point = [points.reduce((s, q) => s + q[0], 0) / n, points.reduce((s, q) => s + q[1], 0) / n];
      const near = points.findIndex((q) => Math.hypot(q[0] - p[0], q[1] - p[1]) < REACH);
      if (near >= 0) {
        const [x, y] = points[near]!;
        return { box, faces: corners[near]!.faces, cursor: towards(x - middle[0], y - middle[1]) };
      }
      for (let k = 0; k < n; k++) {
        const [a, b] = [points[k]!, points[(k + 1) % n]!];
        const face = shared(corners[k]!, corners[(k + 1) % n]!);
        if (face && distance(p, a, b) < REACH - 2) return { box, faces: [face], cursor: towards(b[1] - a[1], a[0] - b[0]) };
      }
    }
    if (inside(p, points)) return { box, faces: [], cursor: "move" };
  }
  return null;
}

/** Where grips are drawn: at the corners, and in the middle of long edges. */
export function grips(points: Point[]): { at: Point; radius: number }[] {
  return points.flatMap((p, k) => {
    const q = points[(k + 1) % points.length]!;
    const middle: Point = [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];
    const long = Math.hypot(q[0] - p[0], q[1] - p[1]) > ROOM;
    return [{ at: p, radius: 4.5 }, ...(long ? [{ at: middle, radius: 3.5 }] : [])];
  });
}

/** From a point to a segment. */
function distance(p: Point, a: Point, b: Point): number {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const t = Math.min(Math.max(((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / Math.max(dx * dx + dy * dy, 1e-9), 0), 1);
  return Math.hypot(a[0] + t * dx - p[0], a[1] + t * dy - p[1]);
}

/** Whether a convex polygon has a point in it: on the same side of all its edges. */
function inside(p: Point, points: Point[]): boolean {
  const sides = points.map((a, k) => {
    const b = points[(k + 1) % points.length]!;
    return Math.sign((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]));
  });
  return sides.every((s) => s >= 0) || sides.every((s) => s <= 0);
}

/** The cursor for a pull in a direction of the screen. */
function towards(x: number, y: number): string {
  const eighth = Math.round((Math.atan2(y, x) / Math.PI) * 4 + 8) % 4;
  return `${["ew", "nwse", "ns", "nesw"][eighth]}-resize`;
}
