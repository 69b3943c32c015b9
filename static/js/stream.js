// The reply in flight: the status line, stopping, the queue behind it, and healing when the connection breaks.
const transcript = document.getElementById("transcript");
const status = document.getElementById("status");
const BROKEN_AFTER = 2000;
const ASK_AGAIN = 3000;
let running = "";
let broken = 0;

const live = () => transcript.querySelector(".entry.live");

function banner(name) {
  document.dispatchEvent(new CustomEvent("banner", { detail: name }));
}

// One polite line says what happens; the words of a reply are read once, when it is whole.
function look() {
  const now = live();
  transcript.setAttribute("aria-busy", String(now !== null));
  if (now && now.id !== running) {
    status.textContent = status.dataset.replying;
  } else if (!now && running) {
    status.textContent = status.dataset[document.getElementById(running)?.dataset.outcome] ?? "";
    whole();
    htmx.trigger(document.body, "reply-over");
  }
  running = now?.id ?? "";
}

new MutationObserver(look).observe(transcript, { childList: true });

// The event source reconnects by itself after a lost connection. After an answer that is no stream (the reply is over,
// the session has ended, a proxy says no) the reply's own page is asked instead, which knows the truth.
function whole() {
  window.clearTimeout(broken);
  broken = 0;
  banner("");
}

transcript.addEventListener("htmx:sseOpen", whole);

transcript.addEventListener("htmx:sseError", (event) => {
  if (!broken) broken = window.setTimeout(banner, BROKEN_AFTER, "stream");
  const entry = event.target.closest(".entry.live");
  if (entry && event.detail.source?.readyState === EventSource.CLOSED) {
    entry.removeAttribute("sse-connect");
    ask(entry);
  }
});

function ask(entry) {
  if (!entry.isConnected) return;
  htmx.ajax("GET", entry.dataset.reply, { target: entry, swap: "outerHTML" });
  window.setTimeout(ask, ASK_AGAIN, entry);
}

// A fold that the person opened stays open when its contents are replaced.
let open = [];
transcript.addEventListener("htmx:sseBeforeMessage", (event) => {
  const entry = event.target.closest(".entry");
  open = [...entry.querySelectorAll(".step[open]")].map((step) => step.dataset.step);
});
transcript.addEventListener("htmx:sseMessage", (event) => {
  for (const name of open) {
    event.target.closest(".entry")?.querySelector(`.step[data-step="${name}"]`)?.setAttribute("open", "");
  }
});

function stop() {
  const form = live()?.querySelector(".stop-form");
  form?.requestSubmit();
  return Boolean(form);
}

document.getElementById("stop").addEventListener("click", () => {
  stop();
  document.getElementById("text").focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector(":popover-open")) return;
  if (stop()) event.preventDefault();
});

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") htmx.trigger(document.body, "page-visible");
});

look();
