/** What the certificate and the plausibility rules say of a patient. */
import type { Patient } from "./types";

export type Verdict = "valid" | "implausible" | "unmet";

export const WORDS: Record<Verdict, string> = { valid: "valid", implausible: "met, but implausible", unmet: "not met" };

/** Nothing for a patient that was loaded. */
export function verdict(p: Patient | undefined): Verdict | undefined {
  if (p?.valid === undefined) return undefined;
  return p.valid ? "valid" : p.met ? "implausible" : "unmet";
}
