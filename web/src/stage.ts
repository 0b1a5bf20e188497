/** One WebGL context for all views: each view is a rectangle of one canvas, drawn only when something changed. */
import { Color, ColorManagement, LinearSRGBColorSpace, WebGLRenderer } from "three";

// Colours are the display's own from the palette to the screen: labels and marks are not lit, tissues are shaded
// by `surface.ts`, and a picture that is kept looks as if it were drawn directly.
ColorManagement.enabled = false;

export interface Pane {
  element: HTMLElement;
  draw(renderer: WebGLRenderer, width: number, height: number): void;
  shown(): boolean;
}

export class Stage {
  readonly canvas = document.createElement("canvas");
  readonly renderer: WebGLRenderer;
  /** Whether the processor draws: then what moves is drawn more coarsely. */
  readonly software: boolean;
  readonly frames: number[] = [];
  private panes: Pane[] = [];
  private wanted = false;

  constructor(readonly host: HTMLElement) {
    this.canvas.className = "stage";
    this.canvas.setAttribute("aria-hidden", "true");
    host.prepend(this.canvas);
    // Edges are smoothed in the layers of the views, where it is paid for once per picture, not once per frame.
    this.renderer = new WebGLRenderer({ canvas: this.canvas, antialias: false, alpha: true });
    this.renderer.outputColorSpace = LinearSRGBColorSpace;
    this.renderer.setScissorTest(true);
    this.renderer.autoClear = false;
    this.renderer.setClearColor(new Color(0), 0);
    this.renderer.debug.checkShaderErrors = import.meta.env.DEV; // it waits for the driver
    this.software = isSoftware(this.renderer.getContext());
    new ResizeObserver(() => this.invalidate()).observe(host);
  }

  add(pane: Pane): void {
    this.panes.push(pane);
    new ResizeObserver(() => this.invalidate()).observe(pane.element);
  }

  /** Draw with the next frame. */
  invalidate(): void {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame((now) => {
      this.wanted = false;
      this.draw();
      this.frames.push(now);
      if (this.frames.length > 600) this.frames.shift();
    });
  }

  private draw(): void {
    const { clientWidth: w, clientHeight: height } = this.host;
    if (!w || !height) return;
    const ratio = Math.min(window.devicePixelRatio, this.software ? 1 : 2);
    if (this.canvas.width !== Math.floor(w * ratio) || this.canvas.height !== Math.floor(height * ratio)) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(w, height, false);
    }
    const at = this.host.getBoundingClientRect();
    this.renderer.setScissor(0, 0, w, height);
    this.renderer.setViewport(0, 0, w, height);
    this.renderer.clear();
    for (const pane of this.panes) {
      if (!pane.shown()) continue;
      const r = pane.element.getBoundingClientRect();
      const x = r.left - at.left;
      const y = at.bottom - r.bottom;
      if (r.width < 2 || r.height < 2) continue;
      this.renderer.setViewport(x, y, r.width, r.height);
      this.renderer.setScissor(x, y, r.width, r.height);
      pane.draw(this.renderer, r.width, r.height);
    }
  }
}

function isSoftware(gl: WebGLRenderingContext | WebGL2RenderingContext): boolean {
  const named = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}
