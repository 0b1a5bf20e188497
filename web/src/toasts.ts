/** Sentences that come and go, read aloud by screen readers. */
import { h } from "./dom";

const host = h("div", { id: "toasts", role: "status", "aria-live": "polite" });
document.body.append(host);

export function toast(text: string, kind: "info" | "error" = "info"): void {
  const shown = h("div", { class: `toast ${kind}` }, `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}`);
  host.append(shown);
  while (host.children.length > 3) host.firstElementChild?.remove();
  setTimeout(() => shown.remove(), kind === "error" ? 9000 : 4000);
}
