// Building what is on the page. Text only ever becomes text: nothing here or above it parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return a new element. `props` may hold `class`, `text`, `on` (event name to handler), `hidden` and plain attributes;
 * `true` sets an attribute without value, `false`, `null` and `undefined` leave it out. Children are nodes or texts.
 */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Return a new SVG element; the same arguments as `el`. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Return a drawn icon of the page's own set, hidden from screen readers: words stand beside it or label its button. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** Take everything out of `node` and put `children` in. */
export function refill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (name === "text") {
      node.textContent = value;
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const ICONS = {
  menu: "M2 4h12M2 8h12M2 12h12",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  send: "M8 13V3M3.5 7.5L8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  lanes: "M2 4h7M5 8h9M3 12h5",
  back: "M6 3L2.5 6.5 6 10M2.5 6.5h7a3.5 3.5 0 0 1 0 7",
  down: "M3.5 6L8 10.5 12.5 6",
  more: "M6 3.5L10.5 8 6 12.5",
};
