/** How tissues look: matte, lit from beside the camera, shaded at the vertices.
 *
 * A fragment costs one multiplication, which is what software rendering needs. Values are the display's own;
 * see `Stage` on colour spaces. */
import { Color, FrontSide, GLSL3, ShaderMaterial } from "three";

const VERTEX = /* glsl */ `
  out float lit;
  void main() {
    vec3 n = normalize(normalMatrix * normal);
    float light = max(dot(n, normalize(vec3(-0.3, 0.5, 1.0))), 0.0);
    // Edges that turn away are a little darker, so that neighbours of one colour stay apart.
    float rim = 0.86 + 0.14 * smoothstep(0.0, 0.5, abs(n.z));
    lit = rim * pow(0.42 + 0.66 * light, 1.0 / 2.2);
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }
`;
const FRAGMENT = /* glsl */ `
  precision mediump float;
  uniform vec3 colour;
  uniform float opacity;
  in float lit;
  out vec4 found;
  void main() { found = vec4(colour * lit, opacity); }
`;

export function surfaceMaterial(): ShaderMaterial {
  return new ShaderMaterial({
    glslVersion: GLSL3,
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
    side: FrontSide,
    uniforms: { colour: { value: new Color() }, opacity: { value: 1 } },
  });
}

export function paint(material: ShaderMaterial, colour: string, opacity: number): void {
  material.uniforms.colour!.value.set(colour);
  material.uniforms.opacity!.value = opacity;
  const translucent = opacity < 0.99;
  if (material.transparent !== translucent) material.needsUpdate = true;
  material.transparent = translucent;
  material.depthWrite = !translucent;
}
