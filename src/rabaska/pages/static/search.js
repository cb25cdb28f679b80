// The page of a search: a trial lights up in all charts, and ranges of values are chosen.

const ranges = new Map(); // by axis: [low, high], from 0 to 1
const part = () => document.getElementById("search");
const shapes = () => part().querySelectorAll("[data-trial]");

function light(number) {
  for (const one of part().querySelectorAll(".lit")) one.classList.remove("lit");
  if (!number) return;
  for (const one of part().querySelectorAll(`[data-trial="${CSS.escape(number)}"]`)) one.classList.add("lit");
}

function told(number) {
  const row = part().querySelector(`tr[data-trial="${CSS.escape(number)}"]`);
  if (!row) return `trial ${number}`;
  const names = [...part().querySelectorAll("table.trials th")].map((one) => one.textContent);
  return [...row.cells].map((cell, place) => [names[place], cell.textContent])
    .filter(([, text]) => text).map(([name, text]) => `${name} ${text}`).join("\n");
}

function showTip(event) {
  const tip = document.getElementById("tip");
  const shape = event.target.closest("svg [data-trial]");
  tip.hidden = !shape;
  light(event.target.closest("[data-trial]")?.dataset.trial);
  if (!shape) return;
  tip.textContent = told(shape.dataset.trial);
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
}

function choose() {
  const off = new Set();
  let all = 0;
  for (const line of part().querySelectorAll("path[data-places]")) {
    all++;
    const places = line.dataset.places.split(",");
    for (const [axis, [low, high]] of ranges) {
      const place = places[axis] === "" ? null : Number(places[axis]);
      if (place === null || place < low || place > high) off.add(line.dataset.trial);
    }
  }
  for (const shape of shapes()) shape.classList.toggle("off", off.has(shape.dataset.trial));
  for (const hold of part().querySelectorAll("rect.hold")) draw(hold);
  const chosen = document.getElementById("chosen");
  if (!chosen) return;
  chosen.dataset.text ??= chosen.textContent;
  chosen.textContent = ranges.size ? `${all - off.size} of ${all} trials are chosen; double click an axis to show all.` : chosen.dataset.text;
}

function draw(hold) {
  hold.parentNode.querySelector(`.range[data-of="${hold.dataset.axis}"]`)?.remove();
  const range = ranges.get(Number(hold.dataset.axis));
  if (!range) return;
  const [top, bottom] = [Number(hold.dataset.top), Number(hold.dataset.bottom)];
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const at = (share) => bottom - share * (bottom - top);
  const set = { class: "range", "data-of": hold.dataset.axis, x: Number(hold.getAttribute("x")) + 6, width: 16, y: at(range[1]), height: Math.max(2, at(range[0]) - at(range[1])) };
  for (const [name, value] of Object.entries(set)) box.setAttribute(name, value);
  hold.before(box);
}

// How far up an axis the pointer is, from 0 to 1.
function height(hold, event) {
  const matrix = hold.getScreenCTM().inverse();
  const y = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix).y;
  const [top, bottom] = [Number(hold.dataset.top), Number(hold.dataset.bottom)];
  return Math.min(1, Math.max(0, (bottom - y) / (bottom - top)));
}

function grab(event) {
  const hold = event.target.closest?.("rect.hold");
  if (!hold || event.button) return;
  event.preventDefault();
  const axis = Number(hold.dataset.axis);
  const from = height(hold, event);
  hold.setPointerCapture(event.pointerId);
  hold.onpointermove = (move) => {
    const to = height(hold, move);
    if (Math.abs(to - from) < 0.01) return;
    ranges.set(axis, [Math.min(from, to), Math.max(from, to)]);
    choose();
  };
  hold.onpointerup = () => { hold.onpointermove = hold.onpointerup = null; };
}

export function listenToSearch() {
  const root = part();
  root.addEventListener("pointerdown", grab);
  root.addEventListener("dblclick", (event) => {
    if (!event.target.closest("rect.hold, rect.range")) return;
    ranges.clear();
    choose();
  });
  root.addEventListener("pointermove", showTip);
  root.addEventListener("pointerleave", () => { document.getElementById("tip").hidden = true; light(); });
  document.addEventListener("rabaska:replaced", (event) => { if (event.detail === root) choose(); });
}
