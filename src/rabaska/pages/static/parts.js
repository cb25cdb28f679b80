// Parts of a page are HTML made by the server. They are asked for again when it says that anything
// changed, and replaced only where they are different.

const shown = new WeakMap(); // the text that a part was made of
const seen = new WeakSet(); // lazy parts that have been on the screen

function addressOf(part) {
  const address = new URL(part.dataset.part, location.origin);
  if ("withQuery" in part.dataset) address.search = location.search;
  if (part.dataset.form) {
    const form = document.getElementById(part.dataset.form);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
  }
  return address;
}

function isReady(part) {
  const needs = part.dataset.needs;
  return !needs || addressOf(part).searchParams.has(needs);
}

export async function renew(part) {
  if (!isReady(part)) return;
  let answer;
  try {
    answer = await fetch(addressOf(part), { headers: { accept: "text/html", "x-known": part.dataset.version ?? "" } });
  } catch {
    return; // the line to rabaska is gone; the page says so
  }
  const text = await answer.text();
  if (answer.status === 404) return gone(part);
  if (answer.status === 204) return; // it has what is known
  if (!answer.ok || shown.get(part) === text) return;
  replace(part, text);
  shown.set(part, text);
  part.dataset.version = answer.headers.get("x-version") ?? "";
  showAges();
  document.dispatchEvent(new CustomEvent("rabaska:replaced", { detail: part }));
}

function gone(part) {
  if (part.querySelector(".gone")) return;
  const note = document.createElement("p");
  note.className = "stale gone";
  note.textContent = "This run is gone: it was deleted or forgotten. What is below is what was last seen.";
  part.prepend(note);
}

function replace(part, text) {
  const log = part.querySelector("pre.log");
  const follows = document.getElementById("follow")?.checked ?? true;
  const place = log ? log.scrollTop : 0;
  const marked = new Set([...part.querySelectorAll("input[name=run]:checked")].map((box) => box.value));
  const here = part.querySelector("tr.here")?.dataset.key;
  const typing = part.contains(document.activeElement) && document.activeElement.matches("input,select");
  if (typing) return; // what somebody types is not taken away
  if (part.id === "charts" && sameCharts(part, text)) return;
  part.innerHTML = text; // escaped by the server, and the page runs no script that stands in it
  for (const box of part.querySelectorAll("input[name=run]")) box.checked = marked.has(box.value);
  if (here) part.querySelector(`tr[data-key="${CSS.escape(here)}"]`)?.classList.add("here");
  const now = part.querySelector("pre.log");
  if (now) now.scrollTop = follows ? now.scrollHeight : place;
}

// Charts are drawn again by themselves; the part is replaced only when there are others.
function sameCharts(part, text) {
  const titles = (root) => [...root.querySelectorAll(".plot")].map((one) => one.dataset.names ?? one.dataset.pairs).join();
  const made = new DOMParser().parseFromString(text, "text/html");
  return part.querySelector(".plot") !== null && titles(part) === titles(made);
}

const DAY = 86400;

function ago(seconds) {
  if (seconds < 2) return "just now";
  if (seconds < 120) return `${Math.round(seconds)} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 2 * DAY) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / DAY)} d ago`;
}

export function showAges() {
  const now = Date.now() / 1000;
  for (const time of document.querySelectorAll("time[data-at]")) {
    if (!time.title) time.title = time.textContent;
    time.textContent = ago(Math.max(0, now - Number(time.dataset.at)));
  }
}

function renewAll() {
  for (const part of document.querySelectorAll("[data-part]")) {
    const isOnce = "once" in part.dataset && shown.has(part);
    const waits = "lazy" in part.dataset && !seen.has(part);
    if (!isOnce && !waits && (!("slow" in part.dataset) || !shown.has(part))) renew(part);
  }
  document.dispatchEvent(new CustomEvent("rabaska:changed"));
}

function connect() {
  const state = document.getElementById("link-state");
  const events = new EventSource("/events");
  let version = null;
  events.addEventListener("changed", (event) => {
    const told = JSON.parse(event.data).version;
    if (version !== null && told !== version) renewAll();
    version = told;
    state.textContent = "live";
    state.className = "";
  });
  events.onerror = () => {
    state.textContent = "rabaska ui has ended or does not answer; trying again";
    state.className = "lost";
  };
  // The browser would hold the connection open until the page is gone for good.
  addEventListener("pagehide", () => events.close());
}

export function keepFresh() {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting && !seen.has(one.target))) {
      seen.add(entry.target);
      renew(entry.target);
    }
  }, { rootMargin: "200px" });
  for (const part of document.querySelectorAll("[data-part]")) {
    if ("lazy" in part.dataset) watcher.observe(part);
    if (part.dataset.form) {
      const form = document.getElementById(part.dataset.form);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        shown.delete(part);
        renew(part);
      });
      form.addEventListener("change", () => renew(part));
    }
  }
  const choose = document.getElementById("choose");
  choose?.addEventListener("input", () => {
    const query = new URLSearchParams([...new FormData(choose)].filter(([, value]) => value));
    history.replaceState(null, "", query.size ? `/?${query}` : "/");
    renew(document.getElementById("runs"));
  });
  choose?.addEventListener("submit", (event) => {
    if (event.submitter?.getAttribute("form") === "marked") return;
    event.preventDefault();
    document.activeElement.blur();
  });
  document.addEventListener("click", (event) => {
    const key = event.target.closest("button[data-sort]")?.dataset.sort;
    if (!key || !choose) return;
    const { sort, reverse } = choose.elements;
    reverse.checked = sort.value === key && !reverse.checked;
    sort.value = key;
    choose.dispatchEvent(new Event("input"));
  });
  const more = document.querySelector("[data-more]");
  if (more) requestAnimationFrame(() => setTimeout(() => renew(more)));
  showAges();
  setInterval(showAges, 1000);
  setInterval(() => {
    for (const part of document.querySelectorAll("[data-slow]")) if (seen.has(part)) renew(part);
  }, 30000);
  for (const part of document.querySelectorAll("[data-every]")) {
    renew(part); // what stands there is what was last seen
    setInterval(() => { if (!document.hidden) renew(part); }, 1000 * part.dataset.every);
  }
  connect();
}
