// Cancel, resume, fetch and notes: sent to the server, and what it answers is shown.

const ASK = { cancel: "Stop this run? Its results and checkpoints are kept." };
let timer = 0;

export function say(text, isProblem) {
  const box = document.getElementById("said");
  box.textContent = text;
  box.className = isProblem ? "problem" : "";
  box.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => { box.hidden = true; }, isProblem ? 30000 : 8000);
}

async function act(what, run, fields) {
  if (ASK[what] && !confirm(ASK[what])) return;
  say(`${what} …`);
  try {
    const answer = await fetch(`/do/${what}/${encodeURIComponent(run)}`, {
      method: "POST", body: new URLSearchParams(fields),
    });
    const told = await answer.json();
    if (answer.ok) say(told.said.join("\n") || "done");
    else say([told.problem, told.why && `because ${told.why}`, told.hint].filter(Boolean).join("\n"), true);
  } catch (problem) {
    say(`rabaska did not answer: ${problem.message}`, true);
  }
}

export function listenToButtons() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-do]");
    if (button) act(button.dataset.do, button.dataset.run, {});
    if (!event.target.closest("#said")) return;
    document.getElementById("said").hidden = true;
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-do]");
    if (!form) return;
    event.preventDefault();
    document.activeElement.blur();
    act(form.dataset.do, form.dataset.run, new FormData(form));
  });
}
