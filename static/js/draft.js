// The unsent draft of the composer, kept in this browser for one person until the server has the message.
// It goes when the message is saved and when the person signs out, from whatever page.
const key = `previously.draft.${document.body.dataset.person}`;
const box = document.getElementById("text");
let timer = 0;

// A browser may forbid storage; then there is simply no draft, and nothing else changes.
function withStorage(use) {
  try {
    return use(window.localStorage);
  } catch {
    return null;
  }
}

function keep() {
  window.clearTimeout(timer);
  withStorage((storage) => (box.value ? storage.setItem(key, box.value) : storage.removeItem(key)));
}

if (box) {
  const kept = withStorage((storage) => storage.getItem(key));
  if (kept && !box.value) {
    box.value = kept;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }
  box.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(keep, 250);
  });
  window.addEventListener("pagehide", keep);
  box.addEventListener("saved", keep);
}

document.addEventListener("submit", (event) => {
  if (!event.target.action?.endsWith("/logout/")) return;
  if (box) box.value = "";
  window.clearTimeout(timer);
  withStorage((storage) => storage.removeItem(key));
});
