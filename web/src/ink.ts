/** Lines, areas and dots over the slices, in pixels, with soft edges.
 *
 * They are drawn by WebGL with the slices and not as SVG, which the browser would paint anew with every frame. */
import { BufferAttribute, BufferGeometry, Color, DoubleSide, GLSL3, Mesh, ShaderMaterial, Vector2 } from "three";

const VERTEX = /* glsl */ `
  uniform vec2 size;
  in vec4 tint;
  out vec4 shade;
  void main() {
    shade = tint;
    gl_Position = vec4(2.0 * position.x / size.x - 1.0, 1.0 - 2.0 * position.y / size.y, 0.0, 1.0);
  }
`;
const FRAGMENT = /* glsl */ `
  precision mediump float;
  in vec4 shade;
  out vec4 colour;
  void main() { colour = vec4(shade.rgb * shade.a, shade.a); }
`;

export type Point = [number, number];

export class Ink {
  readonly mesh: Mesh<BufferGeometry, ShaderMaterial>;
  private places: number[] = [];
  private tints: number[] = [];

  constructor() {
    const material = new ShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      transparent: true,
      premultipliedAlpha: true,
      depthTest: false,
      side: DoubleSide, // pixels count downwards, which turns every triangle over
      uniforms: { size: { value: new Vector2(1, 1) } },
    });
    this.mesh = new Mesh(new BufferGeometry(), material);
    this.mesh.frustumCulled = false;
    this.mesh.renderOrder = 2;
  }

  clear(): void {
    this.places = [];
    this.tints = [];
  }

  /** Hand everything to the graphics card, for a view of this size. */
  finish(width: number, height: number): void {
    this.mesh.material.uniforms.size!.value.set(width, height);
    this.mesh.geometry.dispose();
    const made = new BufferGeometry();
    made.setAttribute("position", new BufferAttribute(new Float32Array(this.places), 3));
    made.setAttribute("tint", new BufferAttribute(new Float32Array(this.tints), 4));
    this.mesh.geometry = made;
  }

  line([x, y]: Point, [u, v]: Point, width: number, colour: string, opacity = 1): void {
    const length = Math.hypot(u - x, v - y);
    if (length < 1e-6) return;
    const [nx, ny] = [(y - v) / length, (u - x) / length];
    // Four rows of vertices across: the outer two are clear, which softens the edge over one pixel.
    const rows = [[-width / 2 - 0.5, 0], [-width / 2 + 0.5, 1], [width / 2 - 0.5, 1], [width / 2 + 0.5, 0]] as const;
    for (let k = 0; k < 3; k++) {
      const [a, alpha] = rows[k]!;
      const [b, beta] = rows[k + 1]!;
      const at = (px: number, py: number, by: number): Point => [px + nx * by, py + ny * by];
      this.triangle(at(x, y, a), at(u, v, a), at(u, v, b), colour, opacity * alpha, opacity * alpha, opacity * beta);
      this.triangle(at(x, y, a), at(u, v, b), at(x, y, b), colour, opacity * alpha, opacity * beta, opacity * beta);
    }
  }

  dashed([x, y]: Point, [u, v]: Point, width: number, colour: string, opacity: number): void {
    const length = Math.hypot(u - x, v - y);
    for (let at = 0; at < length; at += 6) {
      const [a, b] = [at / length, Math.min(at + 3, length) / length];
      this.line([x + a * (u - x), y + a * (v - y)], [x + b * (u - x), y + b * (v - y)], width, colour, opacity);
    }
  }

  /** A convex area, given by its corners in order. */
  area(corners: Point[], colour: string, opacity: number): void {
    for (let k = 1; k + 1 < corners.length; k++)
      this.triangle(corners[0]!, corners[k]!, corners[k + 1]!, colour, opacity, opacity, opacity);
  }

  dot([x, y]: Point, radius: number, colour: string): void {
    const around = 18;
    const at = (k: number, r: number): Point => [x + r * Math.cos((2 * Math.PI * k) / around), y + r * Math.sin((2 * Math.PI * k) / around)];
    for (let k = 0; k < around; k++) {
      this.triangle([x, y], at(k, radius - 0.5), at(k + 1, radius - 0.5), colour, 1, 1, 1);
      this.triangle(at(k, radius - 0.5), at(k, radius + 0.5), at(k + 1, radius + 0.5), colour, 1, 0, 0);
      this.triangle(at(k, radius - 0.5), at(k + 1, radius + 0.5), at(k + 1, radius - 0.5), colour, 1, 0, 1);
    }
  }

  private triangle(p: Point, q: Point, r: Point, colour: string, a: number, b: number, c: number): void {
    const { r: red, g, b: blue } = tint(colour);
    this.places.push(p[0], p[1], 0, q[0], q[1], 0, r[0], r[1], 0);
    this.tints.push(red, g, blue, a, red, g, blue, b, red, g, blue, c);
  }
}

const tints = new Map<string, Color>();
function tint(colour: string): Color {
  if (!tints.has(colour)) tints.set(colour, new Color(colour));
  return tints.get(colour)!;
}
