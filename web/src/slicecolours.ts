/** How slices are coloured: labels from one 3D texture, their colours from a palette with one texel for each. */
import { DataTexture, GLSL3, NearestFilter, RGBAFormat, ShaderMaterial, Vector2 } from "three";
import { colours } from "./palette";
import { store } from "./store";

const VERTEX = /* glsl */ `
  out vec2 at;
  void main() { at = uv; gl_Position = vec4(position.xy, 0.0, 1.0); }
`;
const FRAGMENT = /* glsl */ `
  precision highp float;
  precision highp sampler3D;
  uniform sampler3D labels;
  uniform sampler2D palette;
  uniform int across;
  uniform float depth;
  uniform vec2 span;
  uniform vec2 centre;
  in vec2 at;
  out vec4 colour;
  void main() {
    vec2 p = (at - 0.5) * span + centre;
    if (p.x < 0.0 || p.x > 1.0 || p.y < 0.0 || p.y > 1.0) discard;
    p.x = 1.0 - p.x;
    vec3 r = across == 2 ? vec3(p.x, p.y, depth) : across == 1 ? vec3(p.x, depth, p.y) : vec3(depth, p.x, p.y);
    float label = texture(labels, r.zyx).r * 255.0;
    vec4 found = texture(palette, vec2((label + 0.5) / 256.0, 0.5));
    if (label < 0.5) found.a = 0.0;
    colour = vec4(found.rgb * found.a, found.a);
  }
`;

export function sliceMaterial(palette: DataTexture, across: 0 | 1 | 2): ShaderMaterial {
  return new ShaderMaterial({
    glslVersion: GLSL3,
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
    transparent: true,
    premultipliedAlpha: true,
    depthTest: false,
    uniforms: {
      labels: { value: null },
      palette: { value: palette },
      across: { value: across },
      depth: { value: 0.5 },
      span: { value: new Vector2(1, 1) },
      centre: { value: new Vector2(0.5, 0.5) },
    },
  });
}

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
