// The composer: grows with the text, sends on Enter, refuses what is too long, and never loses a word.
const form = document.getElementById("composer");
const box = document.getElementById("text");
const count = document.getElementById("count");
const banner = document.getElementById("banner");
const transcript = document.getElementById("transcript");
const limit = Number(form.dataset.limit);
const touch = window.matchMedia("(pointer: coarse)");
const grows = CSS.supports("field-sizing", "content");
let sent = "";
let said = "";

// The server counts code points with line breaks as one; a surrogate pair is one of them.
function length(text) {
  const pairs = text.length * 2 > limit ? (text.match(/[\ud800-\udbff][\udc00-\udfff]/g) ?? []).length : 0;
  return text.length - pairs;
}

function look() {
  if (!grows) {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
  }
  const left = limit - length(box.value);
  const near = left < Math.max(50, limit / 20);
  count.textContent = near ? (left < 0 ? count.dataset.over : count.dataset.left).replace("%s", Math.abs(left)) : "";
  if (left >= 0) banner.querySelector("[data-banner=too-long]")?.remove();
}

function put(text) {
  box.value = text;
  box.focus();
  box.setSelectionRange(text.length, text.length);
  box.dispatchEvent(new Event("input", { bubbles: true }));
}

box.addEventListener("input", look);

box.addEventListener("keydown", (event) => {
  // An Enter that confirms an input method's choice is not ours; Safari reports it as keyCode 229 after the composition.
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
    if (touch.matches && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (!event.repeat) form.requestSubmit();
  } else if (event.key === "ArrowUp" && box.value === "") {
    const last = said || [...transcript.querySelectorAll(".entry.person .verbatim")].at(-1)?.textContent;
    if (last) {
      event.preventDefault();
      put(last);
    }
  }
});

document.addEventListener("click", (event) => {
  const chip = event.target.closest("[data-put]");
  if (chip) put(box.value.trim() ? `${box.value.trimEnd()}\n${chip.dataset.put}` : chip.dataset.put);
});

form.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target !== form) return;
  if (!box.value.trim()) {
    event.preventDefault();
    box.focus();
  } else if (length(box.value) > limit) {
    event.preventDefault();
    document.dispatchEvent(new CustomEvent("banner", { detail: "too-long" }));
    box.focus();
  } else {
    sent = box.value;
  }
});

form.addEventListener("htmx:afterRequest", (event) => {
  if (event.target !== form) return;
  if (event.detail.successful) {
    // What was typed while the message was on its way stays.
    box.value = box.value.startsWith(sent) ? box.value.slice(sent.length) : box.value;
    said = sent;
    box.dispatchEvent(new Event("saved"));
    look();
  }
  if (document.activeElement === document.body || form.contains(document.activeElement)) box.focus();
});

look();
