/** Small pictures of patients for the gallery. */
import { PerspectiveCamera, Scene, WebGLRenderTarget, type WebGLRenderer } from "three";
import type { Model } from "./models";
import { colours } from "./palette";
import type { Anatomy } from "./types";

const WIDTH = 168;
const HEIGHT = 126;

export function thumbnail(
  renderer: WebGLRenderer,
  model: Model,
  anatomy: Anatomy,
  place: (camera: PerspectiveCamera, anatomy: Anatomy) => void,
): string {
  const target = new WebGLRenderTarget(WIDTH, HEIGHT, { samples: 4 });
  const camera = new PerspectiveCamera(26, WIDTH / HEIGHT, 1, 5000);
  camera.up.set(0, 0, 1);
  place(camera, anatomy);
  camera.updateMatrixWorld();
  const palette = colours(anatomy);
  model.paint((t) => ({ colour: palette.get(t) ?? "#888888", opacity: anatomy.ghost.includes(t) ? 0.35 : 1 }));
  const { visible, parent } = model.group;
  model.group.visible = true;
  const scene = new Scene();
  scene.add(model.group);
  renderer.setRenderTarget(target);
  renderer.clear();
  renderer.render(scene, camera);
  const pixels = new Uint8Array(WIDTH * HEIGHT * 4);
  renderer.readRenderTargetPixels(target, 0, 0, WIDTH, HEIGHT, pixels);
  renderer.setRenderTarget(null);
  target.dispose();
  model.group.visible = visible;
  // An object has one scene at a time; it goes back to the one that it was taken from.
  if (parent) parent.add(model.group);
  return picture(pixels);
}

/** Rows from below and premultiplied, as render targets are, into a PNG, which is neither. */
function picture(pixels: Uint8Array): string {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(WIDTH, HEIGHT);
  for (let y = 0; y < HEIGHT; y++)
    for (let x = 0; x < WIDTH; x++) {
      const from = 4 * ((HEIGHT - 1 - y) * WIDTH + x);
      const to = 4 * (y * WIDTH + x);
      const alpha = pixels[from + 3]!;
      for (let k = 0; k < 3; k++) image.data[to + k] = alpha ? (255 * pixels[from + k]!) / alpha : 0;
      image.data[to + 3] = alpha;
    }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}
