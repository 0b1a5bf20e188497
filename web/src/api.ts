/** Commands to the server. What it refuses is an error with its sentence. */
import type { Anatomy, Box, Constraint, Doc, Patient, Plan, Values } from "./types";

export class Refused extends Error {
  constructor(
    sentence: string,
    readonly status: number,
    readonly body: Record<string, unknown>,
  ) {
    super(sentence);
  }
}

async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new Refused("the studio's server does not answer; is it still running?", 0, {});
  }
  const text = await response.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text);
  } catch {
    body = { sentence: text };
  }
  if (!response.ok) throw new Refused(String(body.sentence ?? response.statusText), response.status, body);
  return body as T;
}

function post<T>(path: string, body: unknown): Promise<T> {
  return call<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

function asked(doc: Doc, patient: string | null, yaml?: string) {
  const what =
    yaml === undefined
      ? { spec: { name: doc.name, anatomy: doc.anatomy, constraints: doc.constraints }, asks: doc.ask, lines: doc.lines }
      : { yaml };
  return {
    anatomy: doc.anatomy,
    ...what,
    patient,
    reference: doc.reference,
    samples: doc.samples,
    seed: doc.seed,
    steps: doc.steps,
  };
}

export const api = {
  catalogue: () => call<{ version: string; anatomies: Anatomy[] }>("/api/catalogue"),
  state: () => call<{ patients: Patient[]; jobs: { job: string; state: string; samples: number }[] }>("/api/state"),
  warm: (anatomy: string) => post("/api/warm", { name: anatomy }),
  phantom: (anatomy: string, seed: number) => post<Patient>("/api/phantom", { anatomy, seed }),
  remove: (id: string) => post(`/api/patient/${id}/remove`, {}),
  quantities: (id: string) => call<{ values: Values }>(`/api/patient/${id}/quantities`),
  task: (name: string) => post<{ constraints: Constraint[]; name: string }>("/api/task", { name }),
  plan: (doc: Doc, patient: string | null, yaml?: string) => post<Plan>("/api/plan", asked(doc, patient, yaml)),
  generate: (doc: Doc, patient: string | null) => post<{ job: string }>("/api/generate", asked(doc, patient)),
  cancel: (job: string) => post<{ cancelled: boolean }>("/api/cancel", { name: job }),
  snap: (patient: string, snap: { to: string; tissues?: string[]; key?: string }) =>
    post<Box>("/api/snap", { patient, snap }),
  writeMarkups: (boxes: (Box & { name: string })[]) => post<unknown>("/api/markups/write", { boxes }),
  readMarkups: (content: unknown) => post<{ boxes: (Box & { name: string })[] }>("/api/markups/read", content),
  upload: (anatomy: string, file: File, mapping?: string) => {
    const query = new URLSearchParams({ anatomy, name: file.name });
    if (mapping) query.set("mapping", mapping);
    return call<Patient>(`/api/upload?${query}`, { method: "POST", body: file });
  },
};

/** Let the browser save something. */
export function save(name: string, content: Blob | string): void {
  const link = document.createElement("a");
  const url = typeof content === "string" ? content : URL.createObjectURL(content);
  link.href = url;
  link.download = name;
  link.click();
  if (typeof content !== "string") setTimeout(() => URL.revokeObjectURL(url), 1000);
}
