/** What lies over an anatomy: domains as boxes, planes and rays; target and achieved ellipsoids. */
import {
  BoxGeometry,
  DoubleSide,
  EdgesGeometry,
  Group,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  SphereGeometry,
  Vector3,
  WireframeGeometry,
} from "three";
import { fromMatrix, quaternion } from "./boxes";
import { markColours } from "./palette";
import { store } from "./store";
import type { Box, Ellipsoid, PlacedConstraint, PlacedDomain } from "./types";

const EDGES = new EdgesGeometry(new BoxGeometry(1, 1, 1));
const SOLID = new BoxGeometry(1, 1, 1);
const BALL = new WireframeGeometry(new SphereGeometry(1, 20, 12));

/** One material for each look, made once: a new one every frame means a new shader program every frame. */
const materials = new Map<string, LineBasicMaterial | MeshBasicMaterial>();
function kept<M extends LineBasicMaterial | MeshBasicMaterial>(key: string, make: () => M): M {
  if (!materials.has(key)) materials.set(key, make());
  return materials.get(key) as M;
}

/** Where something is asked, and the shapes that are asked and measured there. */
export function overlays(): { domains: Group; shapes: Group } {
  const domains = new Group();
  const shapes = new Group();
  const placed = store.told.plan?.constraints ?? [];
  store.doc.constraints.forEach((constraint, i) => {
    const chosen = store.view.selected === i;
    const found = placed.find((p) => p.name === constraint.name && p.family === constraint.domain.family);
    if (constraint.domain.family === "box" && constraint.domain.centre_mm) {
      const box = constraint.domain as unknown as Box;
      domains.add(domain({ ...box, grid: constraint.domain.grid }, chosen, i));
    } else if (found && found.family !== "global") {
      for (const d of found.domains) if (d.valid) domains.add(domain(d, chosen, i));
    }
    if (found && store.view.ellipsoids && (chosen || found.domains.length <= 6)) for (const ball of balls(found)) shapes.add(ball);
  });
  return { domains, shapes };
}

function domain(d: (Box & { grid: [number, number, number] }) | PlacedDomain, chosen: boolean, i: number): Group {
  const group = new Group();
  const colour = chosen ? "#ffb020" : store.view.theme === "dark" ? "#c9d4e5" : "#3d4a5c";
  group.position.set(...d.centre_mm);
  group.quaternion.copy("rotation" in d ? fromMatrix(d.rotation) : quaternion(d));
  const flat = d.grid.map((n) => n === 1);
  const size = d.size_mm.map((s, k) => (flat[k] ? 1e-3 : Math.max(s, 1e-3))) as [number, number, number];
  const lines = new LineSegments(EDGES, kept(`edges ${colour}`, () => new LineBasicMaterial({ color: colour, depthTest: !chosen })));
  lines.scale.set(...size);
  lines.renderOrder = 5;
  group.add(lines);
  if (flat.filter(Boolean).length === 1 || chosen) {
    const opacity = flat.some(Boolean) ? 0.22 : 0.07;
    const face = kept(
      `faces ${colour} ${opacity}`,
      () => new MeshBasicMaterial({ color: colour, transparent: true, opacity, side: DoubleSide, depthWrite: false }),
    );
    const mesh = new Mesh(SOLID, face);
    mesh.scale.set(...size);
    mesh.renderOrder = 4;
    group.add(mesh);
  }
  group.userData.constraint = i;
  return group;
}

function balls(found: PlacedConstraint): LineSegments[] {
  const { target, achieved } = markColours();
  return found.domains.flatMap((d) => [
    ...(d.target ? [ball(d.target, target, 1.004)] : []),
    ...(d.achieved ? [ball(d.achieved, achieved, 1)] : []),
  ]);
}

function ball(e: Ellipsoid, colour: string, swell: number): LineSegments {
  const look = kept(`ball ${colour}`, () => new LineBasicMaterial({ color: colour, transparent: true, opacity: 0.6, depthTest: false }));
  const made = new LineSegments(BALL, look);
  const [r0, r1, r2] = e.axes_mm;
  const basis = new Matrix4().makeBasis(
    new Vector3(r0[0], r1[0], r2[0]).multiplyScalar(swell),
    new Vector3(r0[1], r1[1], r2[1]).multiplyScalar(swell),
    new Vector3(r0[2], r1[2], r2[2]).multiplyScalar(swell),
  );
  basis.setPosition(...e.centre_mm);
  made.matrixAutoUpdate = false;
  made.matrix.copy(basis);
  made.renderOrder = 3;
  return made;
}
