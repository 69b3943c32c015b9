// Copy buttons: one for each finished reply, as Markdown, and one for each block of code in it.
const transcript = document.getElementById("transcript");

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without https the clipboard is closed to pages, but a selection can still be copied.
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (!done) throw new Error("the browser does not let the page copy");
}

function button(text) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "copy";
  made.textContent = transcript.dataset.copy;
  made.addEventListener("click", async () => {
    await copy(text());
    made.textContent = transcript.dataset.copied;
    window.setTimeout(() => (made.textContent = transcript.dataset.copy), 1600);
  });
  return made;
}

function addTo(entry) {
  const source = entry.querySelector(":scope > template.source");
  if (!source || entry.querySelector(":scope > footer .copy")) return;
  const made = button(() => source.content.textContent);
  made.classList.add("bare");
  entry.querySelector(":scope > footer").append(made);
  for (const code of entry.querySelectorAll(".words pre")) {
    const frame = document.createElement("div");
    frame.className = "code";
    code.replaceWith(frame);
    frame.append(code, button(() => code.textContent));
  }
  // What scrolls sideways has to be reachable with the keyboard.
  for (const table of entry.querySelectorAll(".words table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
}

const addToAll = () => transcript.querySelectorAll(".entry.agent").forEach(addTo);
new MutationObserver(addToAll).observe(transcript, { childList: true });
addToAll();
