/** The WebSocket: events and patients come, and `show` asks for one. It connects again by itself. */
import { decodeFrame, type Frame } from "./frames";
import type { ServerEvent } from "./types";

export class Socket {
  private socket: WebSocket | null = null;
  private asked: string[] = [];
  private wait = 300;

  constructor(
    private onEvent: (event: ServerEvent) => void,
    private onFrame: (frame: Frame) => void,
    private onState: (connected: boolean) => void,
  ) {
    this.connect();
  }

  show(patient: string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ show: patient }));
    else this.asked.push(patient);
  }

  private connect(): void {
    const socket = new WebSocket(`ws://${location.host}/ws`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.wait = 300;
      this.socket = socket;
      this.onState(true);
      for (const patient of this.asked.splice(0)) this.show(patient);
    };
    socket.onmessage = (e) => {
      if (typeof e.data === "string") this.onEvent(JSON.parse(e.data));
      else this.onFrame(decodeFrame(e.data));
    };
    socket.onclose = () => {
      this.socket = null;
      this.onState(false);
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, 5000);
    };
  }
}
