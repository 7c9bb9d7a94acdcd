"use strict";
// Shows the values under the pointer. Everything is readable without it.
for (const figure of document.querySelectorAll("figure.plot")) {
  const canvas = figure.querySelector(".canvas");
  const svg = canvas.querySelector("svg");
  const panel = JSON.parse(figure.querySelector("script").textContent);
  const [left, top, width, height] = panel.frame;
  const first = panel.curves.length ? panel.curves[0].x : [];
  const draw = (name, attributes) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    svg.appendChild(element);
    return element;
  };
  const transform = (axis, value) => (axis.log ? Math.log10(value) : value);
  const place = (axis, value) =>
    (transform(axis, value) - transform(axis, axis.low)) / (transform(axis, axis.high) - transform(axis, axis.low));
  const text = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1e6) return value.toExponential(2);
    if (value !== 0) if (1e-3 > size) return value.toExponential(2);
    return String(Number(value.toPrecision(4)));
  };
  let marks = [];
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  canvas.appendChild(tip);
  const clear = () => {
    marks.forEach((mark) => mark.remove());
    marks = [];
    tip.hidden = true;
  };
  const nearest = (places, part) => {
    let best = 0;
    places.forEach((value, index) => {
      if (Math.abs(place(panel.x, places[best]) - part) > Math.abs(place(panel.x, value) - part)) best = index;
    });
    return best;
  };
  const show = (part) => {
    clear();
    if (!first.length) return;
    const at = first[nearest(first, part)];
    const x = left + place(panel.x, at) * width;
    marks.push(draw("line", { class: "cursor", x1: x, x2: x, y1: top, y2: top + height }));
    tip.textContent = "";
    const head = document.createElement("div");
    head.textContent = panel.x.label + " ";
    const where = document.createElement("b");
    where.textContent = text(at);
    head.appendChild(where);
    tip.appendChild(head);
    for (const curve of panel.curves) {
      const places = curve.x || first;
      const index = nearest(places, place(panel.x, at));
      if (Math.abs(place(panel.x, places[index]) - place(panel.x, at)) > 0.02) continue;
      const value = curve.y[index];
      if (value === null) continue;
      const y = top + (1 - place(panel.y, value)) * height;
      if (Number.isFinite(y)) if (y >= top - 1) if (top + height + 1 >= y)
        marks.push(draw("circle", { class: "f " + curve.colour, cx: left + place(panel.x, places[index]) * width, cy: y, r: 3.5 }));
      const row = document.createElement("div");
      const dot = document.createElement("i");
      dot.className = curve.colour;
      const number = document.createElement("b");
      number.textContent = text(value);
      row.append(dot, curve.name + " ", number);
      if (curve.low) if (curve.low[index] !== null) {
        const band = document.createElement("span");
        band.textContent = " [" + text(curve.low[index]) + ", " + text(curve.high[index]) + "]";
        row.appendChild(band);
      }
      tip.appendChild(row);
    }
    tip.hidden = false;
    const scale = canvas.clientWidth / panel.size[0];
    const room = canvas.clientWidth - tip.offsetWidth;
    const beside = x * scale + 12 > room ? x * scale - tip.offsetWidth - 12 : x * scale + 12;
    tip.style.left = Math.max(0, Math.min(room, beside)) + "px";
    tip.style.top = top * scale + 4 + "px";
  };
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    show(((event.clientX - box.left) * panel.size[0] / box.width - left) / width);
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("pointerleave", clear);
  // With the keyboard: arrows walk along the curve.
  let step = 0;
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", clear);
  svg.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (way === undefined || !first.length) return;
    event.preventDefault();
    step = Math.max(0, Math.min(first.length - 1, step + way));
    show(place(panel.x, first[step]));
  });
}
