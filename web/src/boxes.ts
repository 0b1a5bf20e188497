/** Boxes: centre, size and rotation, never a scale matrix. Degrees about x, then y, then z, as in a spec. */
import { Euler, Matrix3, Matrix4, Quaternion, Vector3 } from "three";
import type { Box, Vec3 } from "./types";

export const LEAST_MM = 1;
const RADIAN = 180 / Math.PI;

export function quaternion(box: Box): Quaternion {
  const [x, y, z] = box.rotation_deg;
  // Fixed axes x, y, z in turn are R = Rz Ry Rx, which three.js calls ZYX.
  return new Quaternion().setFromEuler(new Euler(x / RADIAN, y / RADIAN, z / RADIAN, "ZYX"));
}

export function degrees(q: Quaternion): Vec3 {
  const e = new Euler().setFromQuaternion(q, "ZYX");
  return [round(e.x * RADIAN), round(e.y * RADIAN), round(e.z * RADIAN)];
}

export function fromMatrix(rows: [Vec3, Vec3, Vec3]): Quaternion {
  const m = new Matrix3().set(...rows[0], ...rows[1], ...rows[2]);
  return new Quaternion().setFromRotationMatrix(new Matrix4().setFromMatrix3(m));
}

export function round(x: number, digits = 2): number {
  return Number(x.toFixed(digits)) + 0;
}

export function rounded(v: Vector3): Vec3 {
  return [round(v.x), round(v.y), round(v.z)];
}

/** The box with one face moved by `by` mm along its own axis; the opposite face stays. */
export function moveFace(box: Box, axis: 0 | 1 | 2, side: 1 | -1, by: number): Box {
  const size = [...box.size_mm] as Vec3;
  const grown = Math.max(size[axis] + side * by, LEAST_MM);
  const change = grown - size[axis];
  size[axis] = round(grown);
  const along = new Vector3().setComponent(axis, (side * change) / 2).applyQuaternion(quaternion(box));
  return { ...box, size_mm: size, centre_mm: rounded(new Vector3(...box.centre_mm).add(along)) };
}

export function corners(box: Box): Vector3[] {
  const q = quaternion(box);
  const centre = new Vector3(...box.centre_mm);
  const found: Vector3[] = [];
  for (const x of [-0.5, 0.5])
    for (const y of [-0.5, 0.5])
      for (const z of [-0.5, 0.5])
        found.push(
          new Vector3(x * box.size_mm[0], y * box.size_mm[1], z * box.size_mm[2]).applyQuaternion(q).add(centre),
        );
  return found;
}

/** One of a box's six faces: its axis, and on which side of it. */
export interface Face {
  axis: 0 | 1 | 2;
  side: 1 | -1;
}

/** A corner of the polygon in which a plane cuts a box, and the two faces that meet there. */
export interface Corner {
  at: Vector3;
  faces: [Face, Face];
}

/** The polygon in which a plane across an axis cuts the box, in order around its middle. */
export function cut(box: Box, across: 0 | 1 | 2, at: number): Corner[] {
  const all = corners(box);
  const found: Corner[] = [];
  for (const along of [0, 1, 2] as const) {
    const bit = 4 >> along;
    for (let a = 0; a < 8; a++) {
      if (a & bit) continue;
      const from = all[a]!;
      const to = all[a | bit]!;
      const p = from.getComponent(across) - at;
      const q = to.getComponent(across) - at;
      if (p <= 0 === q <= 0) continue;
      const faces = ([0, 1, 2] as const).filter((k) => k !== along).map((axis): Face => ({ axis, side: a & (4 >> axis) ? 1 : -1 }));
      found.push({ at: from.clone().lerp(to, p / (p - q)), faces: faces as [Face, Face] });
    }
  }
  if (found.length < 3) return [];
  const middle = found.reduce((sum, v) => sum.add(v.at), new Vector3()).divideScalar(found.length);
  const [u, v] = across === 0 ? [1, 2] : across === 1 ? [0, 2] : [0, 1];
  const angle = ({ at: p }: Corner) =>
    Math.atan2(p.getComponent(v!) - middle.getComponent(v!), p.getComponent(u!) - middle.getComponent(u!));
  return found.sort((p, q) => angle(p) - angle(q));
}

/** The face that two neighbouring corners of a cut have in common: the edge between them is its cut. */
export function shared(p: Corner, q: Corner): Face | undefined {
  return p.faces.find((f) => q.faces.some((g) => f.axis === g.axis && f.side === g.side));
}

/** The box with some faces moved so that their cuts follow a pointer that moved by `by` mm in the plane. */
export function pull(box: Box, faces: Face[], by: Vector3): Box {
  const turn = quaternion(box);
  return faces.reduce((next, { axis, side }) => {
    const way = new Vector3().setComponent(axis, 1).applyQuaternion(turn);
    return moveFace(next, axis, side, by.dot(way));
  }, box);
}
