/** The 3D view: one patient, or two to compare, with everything that is asked drawn over it. */
import { PerspectiveCamera, Scene, Vector3, Vector4, type WebGLRenderer } from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { h } from "./dom";
import { Handles } from "./handles";
import { Layer } from "./layer";
import type { Model } from "./models";
import { overlays } from "./overlays";
import { colours } from "./palette";
import type { Pane, Stage } from "./stage";
import { store } from "./store";
import { thumbnail } from "./thumbnail";
import type { Anatomy } from "./types";

/** ms of rest after which a turned view is drawn finely again; a wheel has no end of its own. */
const REST = 160;

/** The kept pictures of one rectangle: the patient only, and with all marks. */
interface Kept {
  patient: Layer;
  whole: Layer;
}

export class View3D implements Pane {
  readonly element = h("div", { class: "pane view3d", id: "view3d", tabindex: 0, role: "img", "aria-label": "3D view; drag to turn" });
  readonly second = h("div", { class: "pane view3d second", "aria-label": "3D view of the other patient" });
  readonly camera = new PerspectiveCamera(FIELD, 1, 1, 5000);
  readonly handles: Handles;
  private scene = new Scene();
  private shapes = new Scene();
  private domains = new Scene();
  private marks = new Scene();
  private controls: OrbitControls;
  private patient: Model | null = null;
  private other: Model | null = null;
  private live: Model | null = null;
  private framed = "";
  private moving: "camera" | "box" | null = null;
  private resting = 0;
  private kept: Kept[] = [0, 1].map(() => ({ patient: new Layer(), whole: new Layer() }));

  constructor(private stage: Stage) {
    this.camera.up.set(0, 0, 1);
    // The handles listen first: a drag of theirs is not a turn of the camera.
    this.handles = new Handles(this.marks, this.camera, this.element, (going) => this.dragging(going), () => this.marked());
    this.controls = new OrbitControls(this.camera, this.element);
    this.controls.enableDamping = false;
    this.controls.addEventListener("change", () => this.changed());
    this.controls.addEventListener("start", () => this.turning(true));
    this.controls.addEventListener("end", () => this.turning(false));
    stage.add(this);
    stage.add({
      element: this.second,
      shown: () => store.view.compare === "side" && this.other !== null,
      draw: (renderer, w, height) => this.drawInto(this.kept[1]!, renderer, w, height, [[this.other, 0, 1]]),
    });
  }

  private dragging(going: boolean): void {
    this.controls.enabled = !going;
    this.moves(going ? "box" : null);
  }

  private turning(going: boolean): void {
    clearTimeout(this.resting);
    if (going) this.moves("camera");
    else this.resting = window.setTimeout(() => this.moves(null), REST);
  }

  /** What moves now. Where the processor draws, a camera turns around a decimated surface without smooth edges,
   * and a box moves over a kept picture of the patient. */
  moves(what: "camera" | "box" | null): void {
    this.moving = what;
    const level = this.stage.software && what === "camera" ? "coarse" : "fine";
    for (const model of [this.patient, this.other, this.live]) model?.detail(level);
    this.changed();
  }

  /** The patient, its looks or the camera have changed: nothing that was kept is right. */
  private changed(): void {
    for (const { patient } of this.kept) patient.fresh = false;
    this.marked();
  }

  /** Only marks have changed. */
  private marked(): void {
    for (const { whole } of this.kept) whole.fresh = false;
    this.stage.invalidate();
  }

  shown(): boolean {
    return true;
  }

  set(patient: Model | null, other: Model | null): void {
    for (const old of [this.patient, this.other]) if (old) this.scene.remove(old.group);
    this.patient = patient;
    this.other = other;
    for (const now of [patient, other]) if (now) this.scene.add(now.group);
    this.setLive(null);
  }

  /** A prediction while sampling takes the patient's place until the patient is there. */
  setLive(model: Model | null): void {
    if (this.live) {
      this.scene.remove(this.live.group);
      this.live.dispose();
    }
    this.live = model;
    if (model) this.scene.add(model.group);
    this.repaint();
    this.refresh();
  }

  /** Colours and opacities as they are chosen now. */
  repaint(): void {
    const anatomy = store.anatomy;
    if (!anatomy) return;
    const palette = colours(anatomy);
    const look = (tissue: string) => {
      const { visible, opacity } = store.look(tissue);
      const alone = store.view.solo === null || store.view.solo === tissue;
      return { colour: palette.get(tissue) ?? "#888888", opacity: visible && alone ? opacity : 0 };
    };
    for (const model of [this.patient, this.other, this.live]) model?.paint(look);
    this.changed();
  }

  /** Domains, ellipsoids and handles as they are now. */
  refresh(): void {
    const anatomy = store.anatomy;
    if (!anatomy) return;
    this.frame(anatomy);
    const made = overlays();
    for (const [scene, group] of [[this.domains, made.domains], [this.shapes, made.shapes]] as const) {
      scene.clear();
      scene.add(group);
    }
    this.handles.update();
    this.marked();
  }

  /** Look at the anatomy from its usual side, once for each anatomy. */
  private frame(anatomy: Anatomy): void {
    if (this.framed === anatomy.name) return;
    this.framed = anatomy.name;
    this.reset();
  }

  reset(): void {
    const anatomy = store.anatomy;
    if (!anatomy) return;
    place(this.camera, anatomy);
    this.controls.target.set(0, 0, 0);
    this.controls.update();
    this.changed();
  }

  draw(renderer: WebGLRenderer, w: number, height: number): void {
    const { compare, divider } = store.view;
    const parts: Part[] =
      compare === "slider" && this.other && !this.live
        ? [[this.patient, 0, divider], [this.other, divider, 1]]
        : [[this.live ?? this.patient, 0, 1]];
    this.drawInto(this.kept[0]!, renderer, w, height, parts);
  }

  /** Measured shapes belong to the first patient, handles to the first view; domains are the same for all. */
  private drawInto(kept: Kept, renderer: WebGLRenderer, w: number, height: number, parts: Part[]): void {
    const first = kept === this.kept[0];
    this.camera.aspect = w / height;
    this.camera.fov = fieldOfView(this.camera.aspect);
    this.camera.updateProjectionMatrix();
    this.handles.update();
    const patients = (narrow: Narrow) => {
      for (const [model, from, to] of parts) {
        for (const m of [this.patient, this.other, this.live]) if (m) m.group.visible = m === model;
        narrow(from, to);
        renderer.render(this.scene, this.camera);
      }
      narrow(0, 1);
    };
    const marks = (narrow: Narrow) => {
      if (first && !this.live) {
        narrow(0, parts[0]![2]);
        renderer.render(this.shapes, this.camera);
        narrow(0, 1);
      }
      renderer.render(this.domains, this.camera);
      if (first) renderer.render(this.marks, this.camera);
    };
    const whole = renderer.getScissor(new Vector4());
    const onScreen: Narrow = (from, to) => renderer.setScissor(whole.x + from * whole.z, whole.y, (to - from) * whole.z, whole.w);
    const into = (layer: Layer): Narrow => (from, to) => layer.narrow(renderer, from, to);
    if (this.moving === null || !this.stage.software) {
      kept.whole.show(renderer, w, height, () => {
        patients(into(kept.whole));
        marks(into(kept.whole));
      });
      return;
    }
    if (this.moving === "camera") patients(onScreen);
    else kept.patient.show(renderer, w, height, () => patients(into(kept.patient)));
    marks(onScreen);
  }

  /** A small picture of a model from the anatomy's usual side. */
  thumbnail(model: Model, anatomy: Anatomy): string {
    return thumbnail(this.stage.renderer, model, anatomy, place);
  }
}

/** A model, and the shares of the view's width between which it is shown. */
type Part = [Model | null, number, number];
type Narrow = (from: number, to: number) => void;

const FIELD = 28;
/** Narrower views than this see a wider field, so that the anatomy still fits between their sides. */
const NARROW = 0.85;

/** Degrees from below to above. */
function fieldOfView(aspect: number): number {
  if (aspect >= NARROW) return FIELD;
  return (2 * 180 * Math.atan((Math.tan((FIELD * Math.PI) / 360) * NARROW) / aspect)) / Math.PI;
}

function place(camera: PerspectiveCamera, anatomy: Anatomy): void {
  const azimuth = (anatomy.camera.azimuth_deg * Math.PI) / 180;
  const elevation = (anatomy.camera.elevation_deg * Math.PI) / 180;
  // Azimuth 0 is from the front (the camera is anterior and looks back), growing towards the patient's left.
  const way = new Vector3(
    -Math.sin(azimuth) * Math.cos(elevation),
    Math.cos(azimuth) * Math.cos(elevation),
    Math.sin(elevation),
  );
  camera.position.copy(way.multiplyScalar(anatomy.edge_mm * 2.25));
  camera.near = anatomy.edge_mm / 100;
  camera.far = anatomy.edge_mm * 20;
  camera.lookAt(0, 0, 0);
}
