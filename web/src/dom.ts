/** DOM without a framework: functions that make elements and draw them anew. */
import { PATHS } from "./icons";

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined | null>;

function append(to: Element, children: Child[]): void {
  for (const child of children) if (child || child === "") to.append(child);
}

function set(to: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") to.addEventListener(name.slice(2).toLowerCase(), value);
    else to.setAttribute(name, value === true ? "" : String(value));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  set(made, attributes);
  append(made, children);
  return made;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  append(made, children);
  return made;
}

export function icon(name: string): SVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] ?? "" }),
  );
}

export function button(
  label: string,
  onclick: () => void,
  options: { icon?: string; text?: boolean; class?: string; title?: string; pressed?: boolean; id?: string; disabled?: boolean } = {},
): HTMLButtonElement {
  return h(
    "button",
    {
      type: "button",
      id: options.id,
      class: options.class,
      title: options.title ?? label,
      "aria-label": label,
      "aria-pressed": options.pressed === undefined ? undefined : String(options.pressed),
      disabled: options.disabled,
      onClick: onclick as EventListener,
    },
    options.icon ? icon(options.icon) : null,
    options.text === false ? null : h("span", {}, label),
  );
}

/** A number as people read it: four digits, no exponent. */
export function shown(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 5;
  return String(Number(value.toFixed(digits)));
}

/** Another text; the same text again would be laid out and painted again. */
export function say(host: Element, text: string): void {
  if (host.textContent !== text) host.textContent = text;
}

/** New children; the one that has the focus keeps it, known by its id or its `data-focus`. */
export function replace(parent: Element, ...children: Child[]): void {
  const active = document.activeElement as HTMLElement | null;
  const mark = active && parent.contains(active) ? (active.id ? `#${CSS.escape(active.id)}` : focusOf(active)) : null;
  parent.replaceChildren();
  append(parent, children);
  const again = mark && (parent.querySelector(mark) as HTMLElement | null);
  if (!again) return;
  again.focus({ preventScroll: true });
  // The caret is lost, and a number that is typed now must not be put before the old one.
  if (again instanceof HTMLInputElement && again.type === "number") again.select();
}

function focusOf(active: HTMLElement): string | null {
  return active.dataset.focus ? `[data-focus="${CSS.escape(active.dataset.focus)}"]` : null;
}

/** A function that draws a host's children anew, but never under the hands of someone who types in it. */
export function redrawn(host: HTMLElement, build: () => Child[]): () => void {
  let late = false;
  const draw = () => {
    const active = document.activeElement;
    late = active instanceof HTMLInputElement && host.contains(active) && active.type === "number" && active.value !== active.defaultValue;
    if (!late) replace(host, ...build());
  };
  host.addEventListener("focusout", () => {
    if (late) setTimeout(draw);
  });
  return draw;
}

/** A field for a number, told when it was typed; `set` is given undefined for an empty field. */
export function numberField(attributes: Attributes, value: number | undefined, set: (v: number | undefined) => void): HTMLInputElement {
  const input = h("input", {
    type: "number",
    step: "any",
    value: value === undefined ? "" : String(value),
    ...attributes,
    onChange: (() => {
      input.defaultValue = input.value; // from here on it is not being typed any more
      const v = Number.parseFloat(input.value);
      set(Number.isFinite(v) ? v : undefined);
    }) as EventListener,
  });
  return input;
}
