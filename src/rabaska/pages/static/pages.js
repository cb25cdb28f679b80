// What every page does: keep its parts fresh, show ages, run buttons, listen to keys.
import { keepFresh } from "./parts.js";
import { listenToKeys } from "./keys.js";
import { listenToButtons } from "./buttons.js";

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;

export function otherTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  document.dispatchEvent(new CustomEvent("rabaska:theme"));
}

document.getElementById("theme").addEventListener("click", otherTheme);
const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());

listenToButtons();
listenToKeys(otherTheme);
keepFresh();
if (document.getElementById("curves")) {
  const { drawAll } = await import("./plots.js");
  drawAll();
}
if (document.getElementById("search")?.matches("[data-part]")) {
  const { listenToSearch } = await import("./search.js");
  listenToSearch();
}
