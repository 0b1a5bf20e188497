/** Handles of the chosen box: move and rotate by three.js, size by faces of our own, the opposite one fixed. */
import {
  Mesh,
  MeshBasicMaterial,
  Object3D,
  Plane,
  Raycaster,
  Scene,
  SphereGeometry,
  Vector2,
  Vector3,
  type PerspectiveCamera,
} from "three";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import { degrees, moveFace, quaternion, rounded } from "./boxes";
import { store } from "./store";
import type { Box } from "./types";

const COLOURS = ["#ff5c5c", "#4cd07d", "#5b9bff"] as const;
const KNOB = new SphereGeometry(1, 12, 8);

export class Handles {
  private proxy = new Object3D();
  private controls: TransformControls;
  private knobs: Mesh[] = [];
  private pulled: { knob: Mesh; box: Box; start: number; gesture: string } | null = null;

  constructor(
    scene: Scene,
    private camera: PerspectiveCamera,
    private element: HTMLElement,
    private onDrag: (going: boolean) => void,
    private changed: () => void,
  ) {
    this.controls = new TransformControls(camera, element);
    this.controls.setSize(1.1);
    this.controls.setColors(...COLOURS, "#ffb020");
    scene.add(this.proxy, this.controls.getHelper());
    this.controls.addEventListener("dragging-changed", (e) => {
      this.onDrag(Boolean(e.value));
      if (!e.value) store.endGesture();
    });
    this.controls.addEventListener("objectChange", () => this.moved());
    this.controls.addEventListener("change", () => this.changed());
    element.addEventListener("pointerdown", (e) => this.press(e), { capture: true });
    element.addEventListener("pointermove", (e) => this.pull(e));
    element.addEventListener("pointerup", () => this.release());
    element.addEventListener("pointercancel", () => this.release());
    for (const axis of [0, 1, 2] as const)
      for (const side of [1, -1] as const) {
        const knob = new Mesh(KNOB, new MeshBasicMaterial({ color: COLOURS[axis], depthTest: false }));
        knob.userData = { axis, side };
        knob.renderOrder = 9;
        knob.name = `knob-${axis}-${side}`;
        this.knobs.push(knob);
        scene.add(knob);
      }
  }

  /** The chosen box, if it is one. */
  private get box(): Box | null {
    const chosen = store.view.selected;
    const domain = chosen === null ? undefined : store.doc.constraints[chosen]?.domain;
    return domain?.family === "box" && domain.centre_mm ? (domain as unknown as Box) : null;
  }

  update(): void {
    const box = this.box;
    const { mode } = store.view;
    const byThree = box !== null && mode !== "scale";
    if (byThree && !this.controls.dragging) {
      this.proxy.position.set(...box.centre_mm);
      this.proxy.quaternion.copy(quaternion(box));
      this.proxy.updateMatrixWorld();
    }
    if (byThree) {
      this.controls.setMode(mode === "rotate" ? "rotate" : "translate");
      this.controls.setSpace(mode === "rotate" ? "local" : "world");
      if (this.controls.object !== this.proxy) this.controls.attach(this.proxy);
    } else if (this.controls.object) this.controls.detach();
    this.controls.enabled = byThree;
    for (const knob of this.knobs) {
      knob.visible = box !== null && mode === "scale";
      if (box && knob.visible) {
        knob.position.copy(this.face(box, knob));
        knob.scale.setScalar(this.camera.position.distanceTo(knob.position) * 0.011);
      }
    }
  }

  /** Where the centre of a knob is on the screen, for tests and measurements. */
  screen(axis: number, side: number): [number, number] | null {
    const knob = this.knobs.find((k) => k.userData.axis === axis && k.userData.side === side);
    if (!knob?.visible) return null;
    const p = knob.position.clone().project(this.camera);
    const r = this.element.getBoundingClientRect();
    return [r.left + ((p.x + 1) / 2) * r.width, r.top + ((1 - p.y) / 2) * r.height];
  }

  private face(box: Box, knob: Mesh): Vector3 {
    const { axis, side } = knob.userData as { axis: 0 | 1 | 2; side: 1 | -1 };
    return new Vector3()
      .setComponent(axis, (side * box.size_mm[axis]) / 2)
      .applyQuaternion(quaternion(box))
      .add(new Vector3(...box.centre_mm));
  }

  private moved(): void {
    const chosen = store.view.selected;
    if (chosen === null || !this.box) return;
    store.edit((doc) => {
      Object.assign(doc.constraints[chosen]!.domain, {
        centre_mm: rounded(this.proxy.position),
        rotation_deg: degrees(this.proxy.quaternion),
      });
    }, "handles");
  }

  private ray(e: PointerEvent): Raycaster {
    const r = this.element.getBoundingClientRect();
    const at = new Vector2(((e.clientX - r.left) / r.width) * 2 - 1, 1 - ((e.clientY - r.top) / r.height) * 2);
    const caster = new Raycaster();
    caster.setFromCamera(at, this.camera);
    return caster;
  }

  private press(e: PointerEvent): void {
    const box = this.box;
    if (!box || store.view.mode !== "scale" || e.button !== 0) return;
    const hit = this.ray(e).intersectObjects(this.knobs.filter((k) => k.visible))[0];
    if (!hit) return;
    e.stopImmediatePropagation();
    this.element.setPointerCapture(e.pointerId);
    const knob = hit.object as Mesh;
    this.pulled = { knob, box: structuredClone(box), start: this.along(e, box, knob), gesture: `face-${e.timeStamp}` };
    this.onDrag(true);
  }

  /** How far along the face's axis the pointer is: on the plane through the axis that faces the camera. */
  private along(e: PointerEvent, box: Box, knob: Mesh): number {
    const { axis } = knob.userData as { axis: 0 | 1 | 2 };
    const way = new Vector3().setComponent(axis, 1).applyQuaternion(quaternion(box));
    const origin = this.face(box, knob);
    const towards = this.camera.position.clone().sub(origin);
    const normal = towards.sub(way.clone().multiplyScalar(towards.dot(way))).normalize();
    const hit = this.ray(e).ray.intersectPlane(new Plane().setFromNormalAndCoplanarPoint(normal, origin), new Vector3());
    return hit ? hit.sub(origin).dot(way) : 0;
  }

  private pull(e: PointerEvent): void {
    const pulled = this.pulled;
    const chosen = store.view.selected;
    if (!pulled || chosen === null) return;
    const { axis, side } = pulled.knob.userData as { axis: 0 | 1 | 2; side: 1 | -1 };
    const by = this.along(e, pulled.box, pulled.knob) - pulled.start;
    store.edit((doc) => {
      Object.assign(doc.constraints[chosen]!.domain, moveFace(pulled.box, axis, side, by));
    }, pulled.gesture);
  }

  private release(): void {
    if (!this.pulled) return;
    this.pulled = null;
    store.endGesture();
    this.onDrag(false);
  }
}
