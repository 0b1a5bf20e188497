/** A picture of a view that is kept: drawn with smooth edges, then put on the screen as often as needed. */
import {
  AlwaysDepth,
  DepthTexture,
  GLSL3,
  Mesh,
  NearestFilter,
  NoBlending,
  OrthographicCamera,
  PlaneGeometry,
  Scene,
  ShaderMaterial,
  WebGLRenderTarget,
  type WebGLRenderer,
} from "three";

const VERTEX = /* glsl */ `
  out vec2 at;
  void main() { at = uv; gl_Position = vec4(position.xy, 0.0, 1.0); }
`;
/** Depth comes along, so that what is drawn over the picture can still pass behind it. */
const FRAGMENT = /* glsl */ `
  precision highp float;
  uniform sampler2D picture;
  uniform sampler2D depth;
  in vec2 at;
  out vec4 colour;
  void main() { colour = texture(picture, at); gl_FragDepth = texture(depth, at).r; }
`;

export class Layer {
  /** Whether the picture is still right. */
  fresh = false;
  private target = new WebGLRenderTarget(1, 1, {
    samples: 4,
    minFilter: NearestFilter,
    magFilter: NearestFilter,
    depthTexture: new DepthTexture(1, 1),
  });
  private scene = new Scene();
  private camera = new OrthographicCamera();

  constructor() {
    const material = new ShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      blending: NoBlending,
      depthFunc: AlwaysDepth,
      uniforms: { picture: { value: this.target.texture }, depth: { value: this.target.depthTexture } },
    });
    this.scene.add(new Mesh(new PlaneGeometry(2, 2), material));
  }

  /** Put it on the screen; `draw` makes it anew first if it is not fresh or has another size. */
  show(renderer: WebGLRenderer, width: number, height: number, draw: () => void): void {
    const ratio = renderer.getPixelRatio();
    const w = Math.max(Math.round(width * ratio), 1);
    const high = Math.max(Math.round(height * ratio), 1);
    if (this.target.width !== w || this.target.height !== high) {
      this.target.setSize(w, high);
      this.fresh = false;
    }
    if (!this.fresh) {
      renderer.setRenderTarget(this.target);
      renderer.clear();
      draw();
      renderer.setRenderTarget(null);
      this.fresh = true;
    }
    renderer.render(this.scene, this.camera);
  }

  /** While it is drawn: only what lies between these shares of its width. */
  narrow(renderer: WebGLRenderer, from: number, to: number): void {
    const { width, height } = this.target;
    this.target.scissorTest = from > 0 || to < 1;
    this.target.scissor.set(from * width, 0, (to - from) * width, height);
    renderer.setRenderTarget(this.target); // takes the scissor over
  }
}
