// Keys, as the help of each page lists them.

function rows() {
  return [...document.querySelectorAll("table.runs tbody tr")];
}

function move(by) {
  const all = rows();
  const place = all.findIndex((row) => row.classList.contains("here"));
  const next = all[Math.min(all.length - 1, Math.max(0, place < 0 ? 0 : place + by))];
  all[place]?.classList.remove("here");
  next?.classList.add("here");
  next?.scrollIntoView({ block: "nearest" });
}

const here = () => document.querySelector("tr.here");
const click = (id) => () => document.getElementById(id)?.click();

function turnAxis() {
  const axis = document.getElementById("axis");
  if (!axis) return;
  axis.value = axis.value === "step" ? "time" : "step";
  axis.dispatchEvent(new Event("change", { bubbles: true }));
}

export function listenToKeys(otherTheme) {
  const keys = {
    "/": () => (document.getElementById("filter") ?? document.getElementById("search"))?.focus(),
    j: () => move(1),
    k: () => move(-1),
    Enter: () => here()?.querySelector("a")?.click(),
    x: () => here()?.querySelector("input")?.click(),
    c: () => document.getElementById("marked")?.requestSubmit(),
    g: () => { location.href = "/"; },
    t: turnAxis,
    l: click("log-axis"),
    d: otherTheme,
    "?": () => document.getElementById("help").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement?.blur();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input,select,textarea,dialog,button,a") && event.key !== "Escape") return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
