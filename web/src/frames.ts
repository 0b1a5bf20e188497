/** Binary frames of the server: a JSON header that lists named arrays, then the arrays. */

export type FrameArray = Uint8Array | Uint32Array | Float32Array;

export interface Frame {
  header: {
    type: "patient" | "surface";
    patient?: string;
    job?: string;
    seed?: number;
    step?: number;
    shape: [number, number, number];
    affine: number[][];
    tissues: string[];
    arrays: { name: string; kind: string; shape: number[] }[];
  };
  arrays: Map<string, FrameArray>;
}

const KINDS: Record<string, { new (b: ArrayBuffer, o: number, n: number): FrameArray; BYTES_PER_ELEMENT: number }> = {
  u1: Uint8Array,
  u4: Uint32Array,
  f4: Float32Array,
};

export function decodeFrame(buffer: ArrayBuffer): Frame {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length + ((4 - (length % 4)) % 4);
  const arrays = new Map<string, FrameArray>();
  for (const row of header.arrays) {
    const kind = KINDS[row.kind]!;
    const count = row.shape.reduce((a: number, b: number) => a * b, 1);
    arrays.set(row.name, new kind(buffer, at, count));
    const size = count * kind.BYTES_PER_ELEMENT;
    at += size + ((4 - (size % 4)) % 4);
  }
  return { header, arrays };
}
