/** Three linked slices: one 3D texture, nearest, coloured by a palette; domains drawn over them and dragged. */
import { Mesh, OrthographicCamera, PlaneGeometry, Scene, Vector3, type DataTexture, type ShaderMaterial, type WebGLRenderer } from "three";
import { cut, pull, rounded } from "./boxes";
import { grips, hold, type Cut, type Hold } from "./cuts";
import { h, say } from "./dom";
import { Ink, type Point } from "./ink";
import type { Model } from "./models";
import { sliceMaterial } from "./slicecolours";
import { tissueAt } from "./snapping";
import type { Pane, Stage } from "./stage";
import { store } from "./store";
import type { Box } from "./types";

interface Plane {
  name: string;
  /** The axis across, the axis to the right with its sign, the axis up. Right of the patient is left here. */
  across: 0 | 1 | 2;
  right: 0 | 1;
  up: 1 | 2;
  letters: [string, string, string, string];
}

export const PLANES: Plane[] = [
  { name: "Axial", across: 2, right: 0, up: 1, letters: ["R", "L", "A", "P"] },
  { name: "Coronal", across: 1, right: 0, up: 2, letters: ["R", "L", "S", "I"] },
  { name: "Sagittal", across: 0, right: 1, up: 2, letters: ["A", "P", "S", "I"] },
];

const CHOSEN = "#ffb020";

export class SlicePane implements Pane {
  readonly element: HTMLElement;
  private ink = new Ink();
  private title = h("span", { class: "title" });
  private tissue = h("span", { class: "title tissue", title: "the tissue under the cross-hair" });
  private scene = new Scene();
  private camera = new OrthographicCamera();
  private material: ShaderMaterial;
  private model: Model | null = null;
  private busy = false;

  constructor(
    readonly plane: Plane,
    private stage: Stage,
    palette: DataTexture,
    private onDrag: (going: boolean) => void,
  ) {
    const [left, right, top, bottom] = plane.letters;
    this.element = h(
      "div",
      {
        class: "pane slice",
        tabindex: 0,
        role: "img",
        "aria-label": `${plane.name} slice; arrow keys move through it, plus and minus enlarge it`,
        id: `slice-${plane.name.toLowerCase()}`,
      },
      this.title,
      this.tissue,
      h("span", { class: "letter left" }, left),
      h("span", { class: "letter right" }, right),
      h("span", { class: "letter top" }, top),
      h("span", { class: "letter bottom" }, bottom),
    );
    this.material = sliceMaterial(palette, plane.across);
    this.scene.add(new Mesh(new PlaneGeometry(2, 2), this.material), this.ink.mesh);
    this.element.addEventListener("pointerdown", (e) => this.press(e));
    this.element.addEventListener("pointermove", (e) => {
      if (!this.busy) this.element.style.cursor = this.grip(e)?.cursor ?? "crosshair";
    });
    const wheel = (e: WheelEvent) => {
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) enlarge(-Math.sign(e.deltaY));
      else this.walk(Math.sign(e.deltaY));
    };
    this.element.addEventListener("wheel", wheel, { passive: false });
    this.element.addEventListener("keydown", (e) => {
      if (e.key === "ArrowUp" || e.key === "ArrowRight") this.walk(1);
      else if (e.key === "ArrowDown" || e.key === "ArrowLeft") this.walk(-1);
      else if (e.key === "+" || e.key === "=") enlarge(1);
      else if (e.key === "-") enlarge(-1);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    this.stage.add(this);
  }

  shown(): boolean {
    return this.model !== null;
  }

  set(model: Model | null): void {
    this.model = model?.labels ? model : null;
    this.material.uniforms.labels!.value = this.model?.labels ?? null;
    this.overlay();
  }

  private walk(by: number): void {
    const cursor = [...store.view.cursor] as [number, number, number];
    cursor[this.plane.across] += by * (this.model?.spacing ?? 1);
    store.show({ cursor });
  }

  /** The part of the cube's edge that the view shows, to the right and up. */
  private span(): [number, number] {
    const { clientWidth: w, clientHeight: height } = this.element;
    const least = Math.max(Math.min(w, height), 1) * store.view.zoom;
    return [w / least, height / least];
  }

  /** The middle of the view in the cube, from its left and its foot; an enlarged view stays within the cube. */
  private centre(): [number, number] {
    const [u, v] = this.unit(new Vector3(...store.view.focus));
    const within = (x: number, span: number) => (span >= 1 ? 0.5 : Math.min(Math.max(x, span / 2), 1 - span / 2));
    const [sx, sy] = this.span();
    return [within(1 - u, sx), within(v, sy)];
  }

  /** Where a point in RAS mm lies in the cube, along the axes to the right and up. */
  private unit(p: Vector3): [number, number] {
    const { corner, edge } = this.model!;
    const along = (k: 0 | 1 | 2) => (p.getComponent(k) - corner[k]) / edge;
    return [along(this.plane.right), along(this.plane.up)];
  }

  draw(renderer: WebGLRenderer): void {
    if (!this.model) return;
    this.material.uniforms.span!.value.set(...this.span());
    this.material.uniforms.centre!.value.set(...this.centre());
    const { corner, edge } = this.model;
    this.material.uniforms.depth!.value =
      (store.view.cursor[this.plane.across] - corner[this.plane.across]!) / edge;
    renderer.render(this.scene, this.camera);
  }

  /** RAS mm of a point on the screen, and back. */
  private toMm(x: number, y: number): Vector3 {
    const r = this.element.getBoundingClientRect();
    const [sx, sy] = this.span();
    const [cx, cy] = this.centre();
    const u = 1 - (((x - r.left) / r.width - 0.5) * sx + cx);
    const v = (0.5 - (y - r.top) / r.height) * sy + cy;
    const { corner, edge } = this.model!;
    const found = new Vector3(...store.view.cursor);
    found.setComponent(this.plane.right, corner[this.plane.right]! + u * edge);
    found.setComponent(this.plane.up, corner[this.plane.up]! + v * edge);
    return found;
  }

  private toPixels(p: Vector3): [number, number] {
    const { clientWidth: w, clientHeight: height } = this.element;
    const [sx, sy] = this.span();
    const [cx, cy] = this.centre();
    const [u, v] = this.unit(p);
    return [((1 - u - cx) / sx + 0.5) * w, (0.5 - (v - cy) / sy) * height];
  }

  /** Cross-hair and domains, with grips on the chosen one. */
  overlay(): void {
    const { across, name } = this.plane;
    say(this.title, this.model ? `${name} ${"xyz"[across]} ${Math.round(store.view.cursor[across])}` : name);
    say(this.tissue, (this.model && tissueAt()) ?? "");
    this.ink.clear();
    const { clientWidth: w, clientHeight: height } = this.element;
    if (this.model) {
      const soft = store.view.theme === "dark" ? "#98a6b8" : "#5a6a7e";
      const [cx, cy] = this.toPixels(new Vector3(...store.view.cursor));
      this.ink.dashed([cx, 0], [cx, height], 1, soft, 0.8);
      this.ink.dashed([0, cy], [w, cy], 1, soft, 0.8);
      for (const { points, chosen } of this.cuts()) {
        const colour = chosen ? CHOSEN : soft;
        this.ink.area(points, colour, 0.14);
        points.forEach((p, k) => this.ink.line(p, points[(k + 1) % points.length]!, chosen ? 2 : 1.4, colour));
        if (chosen) for (const { at, radius } of grips(points)) this.dot(at, radius);
      }
    }
    this.ink.finish(w, height);
  }

  private dot(at: Point, radius: number): void {
    this.ink.dot(at, radius + 0.5, "#4b2e00");
    this.ink.dot(at, radius - 0.5, CHOSEN);
  }

  /** The polygons in which this slice cuts the boxes; the chosen one comes last, so it lies on top. */
  private cuts(): Cut[] {
    const { across } = this.plane;
    const found = store.doc.constraints.flatMap((c, i): Cut[] => {
      if (c.domain.family !== "box" || !c.domain.centre_mm) return [];
      const corners = cut(c.domain as unknown as Box, across, store.view.cursor[across]);
      if (!corners.length) return [];
      return [{ box: i, chosen: store.view.selected === i, corners, points: corners.map((p) => this.toPixels(p.at)) }];
    });
    return found.sort((a, b) => Number(a.chosen) - Number(b.chosen));
  }

  private grip(e: PointerEvent): Hold | null {
    if (!this.model) return null;
    const r = this.element.getBoundingClientRect();
    return hold([e.clientX - r.left, e.clientY - r.top], this.cuts());
  }

  private press(e: PointerEvent): void {
    if (!this.model || e.button !== 0) return;
    const held = this.grip(e);
    this.element.setPointerCapture(e.pointerId);
    this.busy = true;
    if (held === null) {
      const go = (m: PointerEvent) => store.show({ cursor: this.toMm(m.clientX, m.clientY).toArray() as [number, number, number] });
      go(e);
      this.follow(go, () => {});
      return;
    }
    const { box: i, faces } = held;
    if (store.view.selected !== i) store.show({ selected: i });
    const start = this.toMm(e.clientX, e.clientY);
    const box = structuredClone(store.doc.constraints[i]!.domain) as unknown as Box;
    this.onDrag(true);
    this.follow(
      (m) => {
        const by = this.toMm(m.clientX, m.clientY).sub(start);
        store.edit((doc) => {
          Object.assign(doc.constraints[i]!.domain, faces.length ? pull(box, faces, by) : moved(box, by));
        }, `slice-${e.pointerId}-${e.timeStamp}`);
      },
      () => {
        store.endGesture();
        this.onDrag(false);
      },
    );
  }

  private follow(move: (e: PointerEvent) => void, end: () => void): void {
    const moved = (e: PointerEvent) => this.busy && move(e);
    const done = () => {
      this.busy = false;
      this.element.removeEventListener("pointermove", moved);
      this.element.removeEventListener("pointerup", done);
      this.element.removeEventListener("pointercancel", done);
      end();
    };
    this.element.addEventListener("pointermove", moved);
    this.element.addEventListener("pointerup", done);
    this.element.addEventListener("pointercancel", done);
  }
}

function moved(box: Box, by: Vector3): Box {
  return { ...box, centre_mm: rounded(new Vector3(...box.centre_mm).add(by)) };
}

/** Enlarge the slices about the cross-hair, or show more again. */
function enlarge(way: number): void {
  const zoom = Math.min(Math.max(store.view.zoom * 1.2 ** way, 1), 10);
  store.show({ zoom, focus: store.view.cursor });
}
