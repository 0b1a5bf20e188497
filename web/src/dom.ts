/** DOM without a framework: one function that makes elements, and the icons. */

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

const PATHS: Record<string, string> = {
  undo: "M9 7 5 11l4 4M5 11h9a5 5 0 0 1 0 10h-2",
  redo: "m15 7 4 4-4 4m4-4h-9a5 5 0 0 0 0 10h2",
  moon: "M20 14.500A8 8 0 0 1 9.500 4a8 8 0 1 0 10.500 10.500z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3m0 14v3M2 12h3m14 0h3M5 5l2 2m10 10 2 2M5 19l2-2M17 7l2-2",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zm10-3a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  off: "M3 3l18 18M10 5.300A9 9 0 0 1 12 5c6 0 10 7 10 7a17 17 0 0 1-3 3.600M6 7.500A17 17 0 0 0 2 12s4 7 10 7a9 9 0 0 0 4-1",
  solo: "M12 3v4m0 10v4M3 12h4m10 0h4M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  box: "M12 3 4 7v10l8 4 8-4V7l-8-4zM4 7l8 4 8-4M12 11v10",
  ellipsoid: "M21 9c1 4-3 8-8 9s-9-1-10-4 2-8 8-10 9 1 10 5zM3.500 13c4 2 13 0 17-5M11 4c-3 3-2 11 1 14",
  home: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  move: "M12 3v18M3 12h18M12 3l-2.500 3M12 3l2.500 3M12 21l-2.500-3M12 21l2.500-3M3 12l3-2.500M3 12l3 2.500M21 12l-3-2.500M21 12l-3 2.500",
  rotate: "M20 11a8 8 0 1 0-2.300 6.500M20 4v7h-7",
  scale: "M4 14v6h6M20 10V4h-6M4 20l6-6M20 4l-6 6",
  magnet: "M6 4v8a6 6 0 0 0 12 0V4h-4v8a2 2 0 0 1-4 0V4H6zM6 8h4m4 0h4",
  download: "M12 4v11m-4-4 4 4 4-4M5 20h14",
  upload: "M12 16V5m-4 4 4-4 4 4M5 20h14",
  play: "M7 5l12 7-12 7V5z",
  stop: "M7 7h10v10H7z",
  drop: "M12 3s6 7 6 11a6 6 0 0 1-12 0c0-4 6-11 6-11z",
  help: "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.200-1.500 2.400M12 17.500v.5",
  compare: "M12 3v18M5 7h4v10H5zM15 7h4v10h-4z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  dice: "M5 5h14v14H5zM9 9h.01M15 9h.01M12 12h.01M9 15h.01M15 15h.01",
};

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
  if (mark) (parent.querySelector(mark) as HTMLElement | null)?.focus({ preventScroll: true });
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
