/** The tissues: colour, opacity, only this one. */
import { button, h, replace, shown } from "./dom";
import { colours } from "./palette";
import { store } from "./store";

export function tissuesPanel(): HTMLElement {
  const list = h("ul", { class: "tissues", id: "tissues" });
  const draw = () => {
    const anatomy = store.anatomy;
    if (!anatomy) return;
    const palette = colours(anatomy);
    const volumes = store.patient?.volumes_ml ?? {};
    const there = anatomy.tissues.filter((t) => !store.patient || t.name in volumes);
    replace(
      list,
      ...there.map((t) => {
        const look = store.look(t.name);
        const hidden = !look.visible || (store.view.solo !== null && store.view.solo !== t.name);
        const swatch = h("input", {
          type: "color",
          class: "swatch",
          value: palette.get(t.name) ?? "#888888",
          title: `Colour of ${t.full_name}; double-click for the palette's`,
          "aria-label": `colour of ${t.full_name}`,
          "data-focus": `colour-${t.name}`,
          onInput: ((e: Event) => store.setLook(t.name, { colour: (e.target as HTMLInputElement).value })) as EventListener,
          onDblclick: (() => {
            store.setLook(t.name, { colour: undefined });
            draw();
          }) as EventListener,
        });
        return h(
          "li",
          { class: hidden ? "hidden" : "", "data-tissue": t.name },
          swatch,
          h("span", { class: "name", title: t.full_name }, t.name),
          h("span", { class: "number" }, t.name in volumes ? `${shown(volumes[t.name])} mL` : ""),
          h("input", {
            type: "range",
            min: 0,
            max: 1,
            step: 0.05,
            value: look.visible ? look.opacity : 0,
            title: `Opacity of ${t.full_name}`,
            "aria-label": `opacity of ${t.full_name}`,
            "data-focus": `opacity-${t.name}`,
            onInput: ((e: Event) => {
              const opacity = Number((e.target as HTMLInputElement).value);
              store.setLook(t.name, { opacity, visible: opacity > 0 });
            }) as EventListener,
          }),
          button(`Only ${t.full_name}`, () => store.show({ solo: store.view.solo === t.name ? null : t.name }), {
            icon: "solo",
            text: false,
            class: "quiet tiny",
            pressed: store.view.solo === t.name,
            id: `solo-${t.name}`,
          }),
        );
      }),
    );
  };
  let last = "";
  const changed = () => {
    // Opacity is dragged: a list that is made anew under the pointer would end the drag.
    const key = JSON.stringify([store.doc.anatomy, store.view.patient, store.view.solo, store.view.palette, store.told.patients.length, store.told.anatomies.length]);
    if (key !== last) draw();
    last = key;
  };
  store.on(["doc", "view", "patients"], changed);
  changed();
  return h("section", { class: "panel-part" }, h("h2", {}, "Tissues"), list);
}
