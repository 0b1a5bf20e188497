/** Patients as three.js objects: one mesh per tissue, fine for looking and coarse for dragging. */
import {
  BufferAttribute,
  BufferGeometry,
  Data3DTexture,
  Group,
  Mesh,
  NearestFilter,
  RedFormat,
  type ShaderMaterial,
  UnsignedByteType,
} from "three";
import type { Frame } from "./frames";
import { paint, surfaceMaterial } from "./surface";
import type { Vec3 } from "./types";

type Part = Mesh<BufferGeometry, ShaderMaterial>;

/** Everyone whose frame has come, by id. */
export const models = new Map<string, Model>();

export class Model {
  readonly group = new Group();
  readonly labels: Data3DTexture | null = null;
  private voxels: Uint8Array | null = null;
  readonly shape: Vec3;
  readonly affine: number[][];
  readonly tissues: string[];
  private parts = new Map<string, { fine: BufferGeometry; coarse: BufferGeometry; mesh: Part }>();
  triangles = { fine: 0, coarse: 0 };

  constructor(frame: Frame) {
    this.shape = frame.header.shape;
    this.affine = frame.header.affine;
    this.tissues = frame.header.tissues;
    const labels = frame.arrays.get("labels");
    if (labels) {
      this.voxels = labels as Uint8Array;
      this.labels = texture(this.voxels, this.shape);
    }
    for (const name of this.tissues) {
      const coarse = geometry(frame, "coarse", name)!;
      const fine = geometry(frame, "fine", name) ?? coarse;
      const mesh: Part = new Mesh(fine, surfaceMaterial());
      mesh.name = name;
      this.group.add(mesh);
      this.parts.set(name, { fine, coarse, mesh });
      this.triangles.fine += (fine.index?.count ?? 0) / 3;
      this.triangles.coarse += (coarse.index?.count ?? 0) / 3;
    }
  }

  /** Edge of the cube's voxels in mm; patients lie in cubes along the axes. */
  get spacing(): number {
    return this.affine[0]![0]!;
  }

  /** RAS mm of the grid's lower corner. */
  get corner(): Vec3 {
    const half = this.spacing / 2;
    return [this.affine[0]![3]! - half, this.affine[1]![3]! - half, this.affine[2]![3]! - half];
  }

  get edge(): number {
    return this.spacing * this.shape[0];
  }

  /** The label at a point in RAS mm, by its place in the table; 0 is background. */
  label(at: Vec3): number {
    const [x, y, z] = at.map((c, k) => Math.floor((c - this.corner[k]!) / this.spacing)) as Vec3;
    const inside = [x, y, z].every((i, k) => i >= 0 && i < this.shape[k]!);
    return inside && this.voxels ? this.voxels[(x * this.shape[1] + y) * this.shape[2] + z]! : 0;
  }

  /** The centre of the labelled voxel nearest to the grid's centre: where a cross-hair shows something. */
  nearest(): Vec3 {
    const { shape, spacing, corner } = this;
    let best: Vec3 = [0, 0, 0];
    let least = Infinity;
    this.voxels?.forEach((label, i) => {
      if (!label) return;
      const at: Vec3 = [Math.floor(i / (shape[1] * shape[2])), Math.floor(i / shape[2]) % shape[1], i % shape[2]];
      const far = at.reduce((sum, c, k) => sum + (c - (shape[k]! - 1) / 2) ** 2, 0);
      if (far >= least) return;
      least = far;
      best = at.map((c, k) => corner[k]! + (c + 0.5) * spacing) as Vec3;
    });
    return best;
  }

  detail(level: "fine" | "coarse"): void {
    for (const part of this.parts.values()) part.mesh.geometry = part[level];
  }

  paint(look: (tissue: string) => { colour: string; opacity: number }): void {
    for (const [name, { mesh }] of this.parts) {
      const { colour, opacity } = look(name);
      mesh.visible = opacity > 0.01;
      paint(mesh.material, colour, opacity);
      mesh.renderOrder = mesh.material.transparent ? 2 : 1;
    }
  }

  dispose(): void {
    for (const { fine, coarse, mesh } of this.parts.values()) {
      fine.dispose();
      coarse.dispose();
      mesh.material.dispose();
    }
    this.labels?.dispose();
  }
}

function geometry(frame: Frame, level: string, name: string): BufferGeometry | null {
  const vertices = frame.arrays.get(`${level}/${name}/vertices`);
  const triangles = frame.arrays.get(`${level}/${name}/triangles`);
  if (!vertices || !triangles) return null;
  const made = new BufferGeometry();
  made.setAttribute("position", new BufferAttribute(vertices as Float32Array, 3));
  made.setIndex(new BufferAttribute(triangles as Uint32Array, 1));
  made.computeVertexNormals();
  made.computeBoundingSphere();
  return made;
}

/** Labels [x][y][z] in C order: z is fastest, so texture coordinates are (z, y, x). */
function texture(labels: Uint8Array, [x, y, z]: [number, number, number]): Data3DTexture {
  const made = new Data3DTexture(labels as Uint8Array<ArrayBuffer>, z, y, x);
  made.format = RedFormat;
  made.type = UnsignedByteType;
  made.minFilter = made.magFilter = NearestFilter;
  made.unpackAlignment = 1;
  made.needsUpdate = true;
  return made;
}
