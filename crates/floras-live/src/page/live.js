// Follows a run by server-sent events. The events are described in board.rs.
const byId = (id) => document.getElementById(id);
const NAMES = ["accuracy", "train", "test", "local", "gain", "noise"];
const MAX_CURVES = 40;
let run = null;
let status = null;
let privacy = null;
let trials = new Map();
let each = false;

// Formatting of numbers.
const number = (value, digits = 3) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (value !== 0 && size < 1e-3)) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
};
// An upper bound: the last digit is rounded up.
const upper = (value, digits = 3) => {
  if (!Number.isFinite(value) || value <= 0) return number(value, digits);
  const shown = Number(value.toPrecision(digits));
  const unit = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return number(shown < value ? shown + unit : shown, digits);
};
const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %");
const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, (_, __, at, digits) => (digits.length > 4 ? "\u202f" : ""));
const power = (value) => {
  const [mantissa, exponent] = value.toExponential().split("e");
  const raised = [...String(Number(exponent))].map((digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])).join("");
  return (mantissa === "1" ? "" : mantissa + "·") + "10" + raised;
};
const duration = (seconds) => {
  if (seconds < 60) return Math.max(1, Math.round(seconds)) + " s";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return minutes + " min";
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? hours + " h " + (minutes % 60) + " min" : Math.round(hours / 24) + " days";
};
const plural = (count, word) => grouped(count) + " " + word + (count === 1 ? "" : "s");
const set = (id, text) => {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
};

// The curves of one quantity: one per trial, or their mean.
const pointsOf = (name, trial) =>
  [...trial.values()].filter((point) => point[name] !== null).sort((a, b) => a.round - b.round).map((point) => [point.round, point[name]]);
const meanOf = (name) => {
  const sums = new Map();
  for (const trial of trials.values())
    for (const [key, point] of trial) {
      if (point[name] === null) continue;
      const sum = sums.get(key) || [0, 0, 0];
      sums.set(key, [Math.max(sum[0], point.round), sum[1] + point[name], sum[2] + 1]);
    }
  return [...sums.values()].map(([round, sum, count]) => [round, sum / count]).sort((a, b) => a[0] - b[0]);
};
const latest = (points) => (points.length ? points[points.length - 1] : [null, null]);
const curvesOf = (name, label, colour) => {
  if (each && trials.size > 1 && trials.size <= MAX_CURVES)
    return [...trials.keys()].sort((a, b) => a - b).map((trial) => ({
      name: label + "trial " + (trial + 1), colour: "s" + (trial % 7), thin: true, points: pointsOf(name, trials.get(trial)),
    }));
  return [{ name: label + (trials.size > 1 ? "mean" : "trial 1"), colour, points: meanOf(name) }];
};
const lossCurves = () => {
  if (each && trials.size > 1) {
    const test = curvesOf("test", "test, ", "s1");
    return test.some((curve) => curve.points.length) ? test : curvesOf("local", "local, ", "s2");
  }
  return [["train", "training", "s0"], ["test", "test", "s1"], ["local", "on mini-batches", "s2"]]
    .map(([name, label, colour]) => ({ name: label, colour, points: meanOf(name) }));
};
const PANELS = [
  { id: "accuracy", title: "Test accuracy", unit: "%", value: (v) => v.toFixed(1) + " %", curves: () => curvesOf("accuracy", "", "s0").map((curve) => ({ ...curve, points: curve.points.map(([x, y]) => [x, 100 * y]) })) },
  { id: "loss", title: "Loss", unit: "mean cross-entropy", curves: lossCurves },
  { id: "epsilon", title: "Privacy spent", unit: "ε", zero: true, curves: () => (privacy ? [{ name: "ε, " + privacy.view + " view", colour: "s1", dots: privacy.points.length < 60, points: privacy.points }] : []), value: (v) => upper(v, 4), limit: () => (privacy && privacy.limit ? [privacy.is_budget ? "budget " + number(privacy.limit, 6) : "after all rounds " + upper(privacy.limit), privacy.limit] : null) },
  { id: "gain", title: "Mean gain of the clients", unit: "gain", curves: () => curvesOf("gain", "", "s2"), caption: "A gain of 1 passes the updates unchanged." },
  { id: "noise", title: "Noise in the decoded sum", unit: "standard deviation ν", curves: () => curvesOf("noise", "", "s3") },
];

// Drawing.
const SVG = "http://www.w3.org/2000/svg";
const draw = (parent, name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const make = (parent, name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const ticks = (low, high, count) => {
  const raw = (high - low) / count;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * base).find((value) => value >= raw * 0.999);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + 1e-9 * step; index++) found.push(Number((index * step).toPrecision(12)));
  return found;
};
// The number of decimals that distinguishes neighbouring marks.
const tickLabels = (marks) => {
  const step = marks.length > 1 ? marks[1] - marks[0] : 1;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (decimals > 6 || Math.max(...marks.map(Math.abs)) >= 1e6) return marks.map((mark) => number(mark, 6));
  return marks.map((mark) => mark.toFixed(decimals));
};
// Keeps at most `most` points: more are not visible.
const thin = (points, most) => {
  if (points.length <= most) return points;
  const step = points.length / most;
  const kept = Array.from({ length: most }, (_, index) => points[Math.floor(index * step)]);
  kept.push(points[points.length - 1]);
  return kept;
};

class Panel {
  constructor(spec) {
    this.spec = spec;
    this.figure = make(byId("plots"), "figure");
    this.figure.id = "plot-" + spec.id;
    make(make(this.figure, "h2", "", spec.title + " "), "span", "unit", spec.unit);
    this.legend = make(this.figure, "ul", "legend");
    this.canvas = make(this.figure, "div", "canvas");
    this.svg = draw(this.canvas, "svg", { role: "img", tabindex: "0", "aria-label": spec.title });
    this.tip = make(this.canvas, "div", "tip");
    this.tip.hidden = true;
    if (spec.caption) make(this.figure, "figcaption", "", spec.caption);
    this.at = null;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.show(null));
    this.svg.addEventListener("blur", () => this.show(null));
    this.svg.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      const all = this.places();
      if (way === undefined || !all.length) return;
      event.preventDefault();
      const now = this.at === null ? 0 : all.indexOf(this.nearest(all, this.at));
      this.show(all[Math.max(0, Math.min(all.length - 1, now + way))]);
    });
    new ResizeObserver(() => this.render()).observe(this.canvas);
  }
  places() {
    return [...new Set(this.curves.flatMap((curve) => curve.points.map(([x]) => x)))].sort((a, b) => a - b);
  }
  nearest(all, x) {
    return all.reduce((best, value) => (Math.abs(value - x) < Math.abs(best - x) ? value : best), all[0]);
  }
  point(event) {
    if (!this.frame) return;
    const { left, width, low, high } = this.frame;
    const x = low + ((event.clientX - this.svg.getBoundingClientRect().left - left) / width) * (high - low);
    const all = this.places();
    this.show(all.length ? this.nearest(all, x) : null);
  }
  show(x) {
    this.at = x;
    this.render();
  }
  render() {
    const { spec, svg } = this;
    this.curves = spec.curves().filter((curve) => curve.points.length);
    const limit = spec.limit ? spec.limit() : null;
    const count = this.curves.reduce((sum, curve) => sum + curve.points.length, 0);
    this.figure.dataset.points = count;
    this.figure.hidden = count === 0 && spec.id !== "accuracy" && !(limit && spec.id === "epsilon");
    svg.textContent = "";
    this.frame = null;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.drawLegend(limit);
    if (!width || this.figure.hidden) return;
    if (!count && !limit) {
      draw(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no values yet");
      return;
    }
    const all = this.curves.flatMap((curve) => curve.points);
    const ys = all.map(([, y]) => y).concat(limit ? [limit[1]] : [], spec.zero ? [0] : []);
    const last = Math.max(2, status ? status.rounds : 0, ...all.map(([x]) => x));
    let [low, high] = [Math.min(...ys), Math.max(...ys)];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    [low, high] = [spec.zero ? 0 : low - room, high + room];
    if (spec.id === "accuracy") [low, high] = [Math.max(0, low), Math.min(100, high)];
    const marks = ticks(low, high, 5);
    const labels = tickLabels(marks);
    const left = 14 + 7 * Math.max(...labels.map((label) => label.length));
    const frame = { left, right: width - 22, top: 8, bottom: height - 38, low: 1, high: last };
    frame.width = frame.right - frame.left;
    const x = (value) => frame.left + ((value - frame.low) / (frame.high - frame.low)) * frame.width;
    const y = (value) => frame.bottom - ((value - low) / (high - low)) * (frame.bottom - frame.top);
    this.frame = frame;
    for (const [index, tick] of marks.entries()) {
      draw(svg, "line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick) });
      draw(svg, "text", { x: frame.left - 6, y: y(tick) + 4, "text-anchor": "end" }, labels[index]);
    }
    const rounds = ticks(frame.low, frame.high, Math.max(2, Math.floor(frame.width / 70))).filter(Number.isInteger);
    if (rounds[0] !== 1) if (x(rounds[0]) - x(1) > 30 || !rounds.length) rounds.unshift(1);
    for (const tick of rounds)
      draw(svg, "text", { x: x(tick), y: frame.bottom + 16, "text-anchor": "middle" }, grouped(tick));
    draw(svg, "line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom });
    draw(svg, "text", { x: (frame.left + frame.right) / 2, y: height - 6, "text-anchor": "middle" }, "round");
    if (limit) draw(svg, "line", { class: "curve limit", x1: frame.left, x2: frame.right, y1: y(limit[1]), y2: y(limit[1]) });
    for (const curve of this.curves) {
      const points = thin(curve.points, 600);
      const path = points.map((point, index) => (index ? "L" : "M") + x(point[0]).toFixed(1) + " " + y(point[1]).toFixed(1)).join("");
      draw(svg, "path", { class: "curve " + curve.colour + (curve.thin ? " thin" : ""), d: path });
      if (curve.dots || points.length === 1) for (const point of points) draw(svg, "circle", { class: curve.colour, cx: x(point[0]), cy: y(point[1]), r: 2.5 });
    }
    this.drawTip(x, y);
  }
  drawLegend(limit) {
    const entries = this.curves.length > 12 ? [{ name: plural(this.curves.length, "curve") + ", one per trial", colour: "s0" }] : this.curves;
    const wanted = entries.map((curve) => [curve.name, curve.colour]).concat(limit ? [[limit[0], "limit"]] : []);
    const key = JSON.stringify(wanted);
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.textContent = "";
    for (const [name, colour] of wanted) {
      const entry = make(this.legend, "li");
      const sample = draw(entry, "svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
      draw(sample, "line", { class: "curve " + colour, x1: 1, x2: 25, y1: 5, y2: 5 });
      entry.append(name);
    }
  }
  drawTip(x, y) {
    const { tip, at, frame, svg, spec } = this;
    tip.hidden = at === null;
    if (at === null) return;
    draw(svg, "line", { class: "cursor", x1: x(at), x2: x(at), y1: frame.top, y2: frame.bottom });
    tip.textContent = "";
    make(tip, "div", "", "round ").append(make(tip, "b", "", grouped(at)));
    for (const curve of this.curves.slice(0, 12)) {
      const found = curve.points.find((point) => point[0] === at);
      if (!found) continue;
      draw(svg, "circle", { class: curve.colour, cx: x(at), cy: y(found[1]), r: 3.5 });
      make(tip, "div", "", curve.name + " ").append(make(tip, "b", "", (spec.value || ((v) => number(v, 4)))(found[1])));
    }
    const beside = x(at) + 12 + tip.offsetWidth > this.canvas.clientWidth ? x(at) - 12 - tip.offsetWidth : x(at) + 12;
    tip.style.left = Math.max(0, beside) + "px";
  }
}
const panels = PANELS.map((spec) => new Panel(spec));

// Text next to the plots.
const STATES = { running: "running", stopped: "interrupted", finished: "finished", lost: "connection lost", connecting: "connecting" };
const showState = (state) => {
  document.body.dataset.state = state;
  set("state", STATES[state]);
};
const showNotice = (className, text, link, command) => {
  const notice = byId("notice");
  const key = JSON.stringify([className, text, link, command]);
  if (notice.dataset.key === key) return;
  notice.dataset.key = key;
  notice.hidden = !text;
  notice.className = "notice " + className;
  notice.textContent = text;
  if (command) make(notice, "code", "command", command);
  if (link) {
    const anchor = make(notice, "a", "", "Open the report");
    anchor.href = "/report.html";
    anchor.target = "_blank";
    anchor.rel = "noopener";
  }
};
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");
const showRun = () => {
  if (!run) return;
  set("name", run.name);
  set("directory", run.directory);
  byId("choice").hidden = run.trials < 2;
};
const showStatus = () => {
  if (!status) return;
  const { state, rounds_done: done, rounds_total: total } = status;
  showState(state);
  const part = total ? done / total : 0;
  byId("progress").value = part;
  const trialCount = run ? run.trials : 1;
  set("rounds", grouped(done) + " of " + grouped(total));
  set("rounds-label", "rounds done; " + plural(trialCount, "trial") + " of " + plural(status.rounds, "round"));
  const speed = status.rounds_per_second;
  set("line", (100 * part).toFixed(0) + " %" + (speed ? ", " + (speed >= 10 ? grouped(speed) : number(speed, 2)) + " rounds/s" : ""));
  if (state === "running") {
    set("left", status.seconds_left === null ? "–" : done === total ? "last steps" : "about " + duration(status.seconds_left));
    set("left-label", done === total && total ? "summary and report are being written" : "remaining time");
  } else {
    set("left", state === "finished" ? "done" : "–");
    set("left-label", state === "finished" ? "the run is complete" : "remaining time");
  }
  const diverged = status.diverged.slice(0, 5).map(([trial, round]) => "trial " + (trial + 1) + " in round " + round).join(", ");
  const warning = diverged ? " Diverged: " + diverged + (status.diverged.length > 5 ? " and more" : "") + "." : "";
  if (state === "finished") showNotice("good", "The run is finished." + warning + (status.report ? " " : " The report is not written yet."), status.report);
  else if (state === "stopped") showNotice("bad", "No process works on this run." + warning + " To resume it:", status.report, "floras run --resume --out " + shellWord(run ? run.directory : "DIR"));
  else showNotice(warning ? "bad" : "", warning.trim());
  const problem = byId("problem");
  problem.hidden = !status.problem;
  problem.textContent = status.problem || "";
  const [round, accuracy] = latest(meanOf("accuracy"));
  set("accuracy", percent(accuracy));
  set("accuracy-label", round === null ? "test accuracy" : "test accuracy after round " + grouped(round) + (trialCount > 1 ? ", mean of the trials" + (state === "finished" ? "" : " so far") : ""));
  document.title = (state === "running" ? (100 * part).toFixed(0) + " % – " : STATES[state] + " – ") + (run ? run.name : "floras");
};
const showPrivacy = () => {
  if (!privacy) return;
  const { epsilon, limit, verdict } = privacy;
  const above = privacy.epsilon_above;
  set("epsilon", epsilon !== null ? "ε = " + upper(epsilon) : above !== null ? "ε > " + power(above) : privacy.reason ? "no finite ε" : "–");
  const mark = byId("verdict");
  mark.hidden = !verdict;
  mark.textContent = verdict;
  mark.className = "mark" + (["strong", "moderate"].includes(verdict) ? " good" : ["none", "not proven"].includes(verdict) ? " bad" : "");
  const meter = byId("meter");
  meter.hidden = epsilon === null || !limit;
  if (limit) {
    meter.max = limit;
    meter.value = epsilon || 0;
  }
  const where = privacy.view + " view, δ = " + power(privacy.delta);
  if (privacy.reason) set("epsilon-label", where + ": " + privacy.reason);
  else if (limit) set("epsilon-label", (privacy.is_budget ? "of a budget of " + number(limit, 6) : "of " + upper(limit) + " after all rounds") + "; " + where);
  else set("epsilon-label", "privacy spent; " + where);
  byId("epsilon").title = "against " + privacy.adversary;
};

// Texts change with every event, also in a background tab, which has no frames. Plots are drawn at most once per frame.
let isPending = false;
const refresh = () => {
  showRun();
  showPrivacy();
  showStatus();
  if (isPending) return;
  isPending = true;
  requestAnimationFrame(() => {
    isPending = false;
    panels.forEach((panel) => panel.render());
  });
};
document.querySelectorAll("input[name=curves]").forEach((input) =>
  input.addEventListener("change", () => {
    each = input.value === "trials" && input.checked;
    refresh();
  }),
);

// The browser reconnects automatically; every connection begins with an event "run".
const source = new EventSource("/events");
source.addEventListener("run", (event) => {
  run = JSON.parse(event.data);
  trials = new Map();
  privacy = null;
  refresh();
});
source.addEventListener("points", (event) => {
  for (const [trial, key, round, values] of JSON.parse(event.data)) {
    const point = { round };
    NAMES.forEach((name, index) => (point[name] = values[index]));
    if (!trials.has(trial)) trials.set(trial, new Map());
    trials.get(trial).set(key, point);
  }
  refresh();
});
source.addEventListener("privacy", (event) => {
  privacy = JSON.parse(event.data);
  refresh();
});
source.addEventListener("status", (event) => {
  status = JSON.parse(event.data);
  refresh();
});
source.onerror = () => {
  showState("lost");
  // The server closes after the end of the run.
  if (status && status.state === "finished") {
    showState("finished");
    showNotice("good", "The run is finished. The live view has ended; the report is report.html in the run directory.");
    source.close();
  }
};
