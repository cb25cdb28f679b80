// Curves: thinned by the server for the width of the screen, and asked for again at each zoom.
import uPlot from "./uplot/uPlot.esm.js";

// A single point has no line: it is drawn itself.
function isAlone(plot, place) {
  return plot.data[place].filter((value) => value !== null && value !== undefined).length === 1;
}

const plots = new Map(); // by figure: {plot, data}
const zoom = { low: null, high: null, during: null };
const control = (id) => document.getElementById(id);
const isTime = () => control("axis")?.value === "time";
const colour = (place) => getComputedStyle(document.documentElement).getPropertyValue(`--c${place % 8}`).trim();
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const cursors = uPlot.sync("curves");
const pairsOf = (figure) => JSON.parse(figure.dataset.pairs);
const isVital = (figure) => "pairs" in figure.dataset;
const isCompared = (figure) => "runs" in figure.dataset;

function addressOf(figure) {
  const query = new URLSearchParams({ points: Math.max(200, 2 * figure.clientWidth) });
  if (isVital(figure)) {
    query.append("run", figure.dataset.run);
    for (const [node, name] of pairsOf(figure)) { query.append("node", node); query.append("name", name); }
    query.append("axis", "time");
    const range = isTime() ? [zoom.low, zoom.high] : zoom.during;
    if (range && range[0] !== null) { query.append("low", range[0]); query.append("high", range[1]); }
    return `/data/vitals?${query}`;
  }
  const runs = isCompared(figure) ? JSON.parse(figure.dataset.runs) : [figure.dataset.run];
  for (const run of runs) query.append("run", run);
  for (const name of JSON.parse(figure.dataset.names)) query.append("name", name);
  query.append("axis", isTime() ? "time" : "step");
  if (zoom.low !== null && !(isCompared(figure) && isTime())) {
    query.append("low", zoom.low);
    query.append("high", zoom.high);
  }
  return `/data/series?${query}`;
}

function smoothed(values, weight) {
  if (!weight) return values;
  let last = 0, share = 1;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    last = last * weight + (1 - weight) * value;
    share *= weight;
    return last / (1 - share);
  });
}

function tables(figure, curves) {
  const weight = isVital(figure) ? 0 : Number(control("smooth")?.value ?? 0);
  const lines = [];
  const data = curves.map((curve, place) => {
    // Runs that are compared begin together, whenever that was.
    const start = isCompared(figure) && isTime() ? curve.x[0] ?? 0 : 0;
    let x = start ? curve.x.map((at) => at - start) : curve.x;
    if (isVital(figure)) [x, curve.y] = withGaps(x, curve.y);
    const label = isCompared(figure) || isVital(figure) ? curve.run : curve.name;
    if (weight) lines.push({ label, place, faint: true });
    lines.push({ label, place });
    return weight ? [x, curve.y, smoothed(curve.y, weight)] : [x, curve.y];
  });
  if (isLog()) for (const table of data) for (let row = 1; row < table.length; row++) {
    table[row] = table[row].map((value) => (value > 0 ? value : null));
  }
  return { lines, data: data.length > 1 ? uPlot.join(data) : data[0] ?? [[], []] };
}

// A node tells nothing between two jobs: no line joins what is far apart.
function withGaps(x, y) {
  const apart = x.slice(1).map((at, place) => at - x[place]).sort((one, other) => one - other);
  const most = apart.length > 20 ? 12 * apart[apart.length >> 1] : Infinity;
  const places = [], values = [];
  x.forEach((at, place) => {
    if (place && at - x[place - 1] > most) { places.push((at + x[place - 1]) / 2); values.push(null); }
    places.push(at);
    values.push(y[place]);
  });
  return [places, values];
}

const isLog = () => control("log-axis")?.checked ?? false;

function said(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e12) return `${+(value / 1e12).toPrecision(4)}T`;
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  return String(+value.toPrecision(5));
}

function since(seconds) {
  if (seconds < 120) return `${+seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${+(seconds / 60).toFixed(1)} min` : `${+(seconds / 3600).toFixed(2)} h`;
}

// As the rest of the page writes them, wherever the browser believes to be.
const two = (number) => String(number).padStart(2, "0");

function clockWords(plot, marks, _axis, _space, apart) {
  let day = "";
  return marks.map((at) => {
    const then = new Date(at * 1000);
    const date = `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
    const seconds = apart < 60 ? `:${two(then.getSeconds())}` : "";
    const time = apart >= 86400 ? "" : `${two(then.getHours())}:${two(then.getMinutes())}${seconds}`;
    const words = date === day ? time : [time, date].filter(Boolean).join("\n");
    day = date;
    return words;
  });
}

function clockValue(at) {
  const then = new Date(at * 1000);
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${two(then.getHours())}:${two(then.getMinutes())}:${two(then.getSeconds())}`;
}

function options(figure, lines) {
  const clock = isVital(figure) || (isTime() && !isCompared(figure));
  const words = clock ? clockWords : (plot, marks) => marks.map(isTime() ? since : said);
  const axis = { stroke: ink("dim"), grid: { stroke: ink("line"), width: 1 }, ticks: { stroke: ink("line") } };
  const gaps = !isVital(figure);
  return {
    width: figure.querySelector(".canvas").clientWidth,
    height: 210,
    cursor: { sync: { key: cursors.key, scales: [clock ? "x" : null, null] }, drag: { x: true, y: false } },
    scales: { x: { time: clock }, y: { distr: isLog() && !isVital(figure) ? 3 : 1 } },
    axes: [{ ...axis, values: words }, { ...axis, size: 56, values: (plot, marks) => marks.map((one) => (one === null ? "" : said(one))) }],
    series: [
      { label: clock ? "time" : isTime() ? "since its start" : "step", value: (plot, at) => (at === null ? "–" : clock ? clockValue(at) : isTime() ? since(at) : said(at)) },
      ...lines.map((line) => ({
        label: line.faint ? `${line.label} (not smoothed)` : line.label,
        stroke: colour(line.place), width: line.faint ? 1 : 1.7, alpha: line.faint ? 0.3 : 1,
        spanGaps: gaps, value: (plot, value) => said(value), points: { show: isAlone, size: 6 },
      })),
    ],
    hooks: {
      setSelect: [(plot) => {
        if (plot.select.width < 4) return;
        const at = (place) => plot.posToVal(place, "x");
        zoomTo(figure, at(plot.select.left), at(plot.select.left + plot.select.width));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }],
    },
  };
}

function zoomTo(figure, low, high) {
  if (isVital(figure) && !isTime()) { zoom.during = [low, high]; zoom.low = zoom.high = null; }
  else { zoom.low = low; zoom.high = high; zoom.during = null; }
  drawVisible();
}

function unzoom() {
  zoom.low = zoom.high = zoom.during = null;
  drawVisible();
}

function paint(figure) {
  const entry = plots.get(figure);
  if (!entry?.curves) return;
  const { lines, data } = tables(figure, entry.curves);
  const canvas = figure.querySelector(".canvas");
  entry.plot?.destroy();
  canvas.replaceChildren();
  if (!data[0].length) {
    canvas.textContent = "no points here";
    return;
  }
  entry.plot = new uPlot(options(figure, lines), data, canvas);
  entry.plot.over.addEventListener("dblclick", unzoom);
  figure.dataset.drawn = String(entry.curves.reduce((sum, curve) => sum + curve.points, 0));
}

async function draw(figure) {
  const entry = plots.get(figure) ?? {};
  plots.set(figure, entry);
  const address = addressOf(figure);
  const turn = (entry.turn = (entry.turn ?? 0) + 1);
  let answer;
  try {
    answer = await fetch(address);
  } catch {
    return; // what is drawn stays
  }
  if (!answer.ok || entry.turn !== turn) return;
  const text = await answer.text();
  if (entry.text === text && entry.address === address) return;
  Object.assign(entry, { text, address, curves: JSON.parse(text).curves });
  if (!isVital(figure) && zoom.low !== null && !zoom.during && entry.curves[0]?.during.length) {
    zoom.during = entry.curves[0].during;
    drawVisible(isVital);
  }
  paint(figure);
}

const visible = new Set();

function drawVisible(which = () => true) {
  for (const figure of visible) if (which(figure)) draw(figure);
}

export function drawAll() {
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) { visible.add(target); draw(target); } else visible.delete(target);
    }
  }, { rootMargin: "150px" });
  const figures = () => [...document.querySelectorAll(".plot")];
  const observe = () => {
    for (const figure of [...plots.keys(), ...visible]) if (!figure.isConnected) {
      plots.get(figure)?.plot?.destroy();
      plots.delete(figure);
      visible.delete(figure);
    }
    for (const figure of figures()) watcher.observe(figure);
    choose();
  };
  const choose = () => {
    const words = control("which")?.value.toLowerCase() ?? "";
    for (const figure of figures()) if (!isVital(figure)) {
      figure.hidden = !`${figure.dataset.title} ${figure.dataset.names}`.toLowerCase().includes(words);
    }
  };
  observe();
  document.addEventListener("rabaska:replaced", (event) => {
    if (event.detail.querySelector(".plot")) observe();
  });
  const repaint = () => { for (const figure of visible) paint(figure); };
  control("axis")?.addEventListener("change", () => { zoom.low = zoom.high = zoom.during = null; drawVisible(); });
  control("log-axis")?.addEventListener("change", repaint);
  control("smooth")?.addEventListener("input", () => {
    control("smooth").nextElementSibling.value = control("smooth").value;
    repaint();
  });
  control("unzoom")?.addEventListener("click", unzoom);
  control("which")?.addEventListener("input", choose);
  document.addEventListener("rabaska:changed", () => drawVisible());
  document.addEventListener("rabaska:theme", repaint);
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(repaint, 150); });
}
