"use strict";
// Shows the values beside the pointer. Everything is readable without it.
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
  const raised = (power) => [...String(power)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)])).join("");
  const text = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (value === 0 || (size >= 1e-3) === (1e6 > size)) return String(Number(value.toPrecision(4))).replace("-", "−");
    const [digits, power] = value.toExponential(3).split("e");
    return String(Number(digits)).replace("-", "−") + "·10" + raised(Number(power));
  };
  const found = /\((%|dB|nats)\)$/.exec(panel.y.label);
  const unit = found ? " " + found[1] : "";
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
  // Beside the vertical line through the points, on the side with more room, so that no point is covered.
  const put = (x, pointerY) => {
    const box = svg.getBoundingClientRect();
    const at = box.left + x * box.width / panel.size[0];
    const room = document.documentElement.clientWidth;
    const isRight = room - at > at;
    tip.style.maxWidth = (isRight ? room - at : at) - 24 + "px";
    tip.style.left = "0px";
    tip.style.top = "0px";
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const middle = pointerY === undefined ? box.top + 0.4 * box.height : pointerY;
    const y = Math.max(4, Math.min(window.innerHeight - size.height - 4, middle - 0.5 * size.height));
    tip.style.left = (isRight ? at + 16 : at - 16 - size.width) + "px";
    tip.style.top = y + "px";
  };
  const show = (part, pointerY) => {
    clear();
    if (!first.length) return;
    const at = first[nearest(first, part)];
    const x = left + place(panel.x, at) * width;
    marks.push(draw("line", { class: "cursor", x1: x, x2: x, y1: top, y2: top + height }));
    tip.textContent = "";
    const head = document.createElement("div");
    head.textContent = panel.x.label + " ";
    const where = document.createElement("b");
    where.textContent = panel.categories.length ? panel.categories[at] : text(at);
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
        marks.push(draw("circle", { class: "point f " + curve.colour, cx: left + place(panel.x, places[index]) * width, cy: y, r: 3.5 }));
      const row = document.createElement("div");
      const dot = document.createElement("i");
      dot.className = curve.colour;
      const number = document.createElement("b");
      number.textContent = text(value) + unit;
      row.append(dot, curve.name + " ", number);
      if (curve.low) if (curve.low[index] !== null) {
        const band = document.createElement("span");
        band.textContent = " [" + text(curve.low[index]) + ", " + text(curve.high[index]) + unit + "]";
        row.appendChild(band);
      }
      tip.appendChild(row);
    }
    put(x, pointerY);
  };
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    show(((event.clientX - box.left) * panel.size[0] / box.width - left) / width, event.clientY);
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("pointerleave", clear);
  window.addEventListener("scroll", clear, { passive: true });
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
// Tables and pictures that do not fit say that they scroll.
const hint = () => {
  for (const part of document.querySelectorAll(".scroll, .portraits .wide")) part.classList.toggle("cut", part.scrollWidth > part.clientWidth + 1);
};
window.addEventListener("resize", hint);
document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", hint));
hint();
