/** The palette of the slices: a texture of one colour for each label. */
import { DataTexture, NearestFilter, RGBAFormat } from "three";
import { colours } from "./palette";
import { store } from "./store";

export function paletteTexture(): DataTexture {
  const made = new DataTexture(new Uint8Array(256 * 4), 256, 1, RGBAFormat);
  made.minFilter = made.magFilter = NearestFilter;
  return made;
}

/** Colours by a label's place in the table; hidden tissues are faint. */
export function fillPalette(palette: DataTexture, shown: (tissue: string) => boolean): void {
  const anatomy = store.anatomy;
  if (!anatomy) return;
  const data = palette.image.data as Uint8Array;
  const chosen = colours(anatomy);
  anatomy.tissues.forEach((tissue, i) => {
    const rgb = Number.parseInt(chosen.get(tissue.name)!.slice(1), 16);
    data.set([rgb >> 16, (rgb >> 8) & 255, rgb & 255, shown(tissue.name) ? 255 : 40], 4 * (i + 1));
  });
  palette.needsUpdate = true;
}
