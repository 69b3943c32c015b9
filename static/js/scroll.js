// Stays at the end while the person is at the end; else a button says that there is something new.
const transcript = document.getElementById("transcript");
const newer = document.getElementById("newer");
const NEAR = 120;
let following = true;

const away = () => document.documentElement.scrollHeight - window.innerHeight - window.scrollY;

function toEnd() {
  following = true;
  newer.hidden = true;
  window.scrollTo(0, document.documentElement.scrollHeight);
}

window.addEventListener("scroll", () => {
  following = away() < NEAR;
  if (following) newer.hidden = true;
}, { passive: true });

const sizes = new ResizeObserver((changes) => {
  if (!transcript.childElementCount) return;
  if (following) toEnd();
  else if (changes.some((change) => change.target === transcript)) newer.hidden = !transcript.querySelector(".entry.live");
});
sizes.observe(transcript);
sizes.observe(document.querySelector(".foot"));

newer.addEventListener("click", () => {
  toEnd();
  document.getElementById("text").focus();
});

transcript.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.requestConfig?.elt?.id === "composer") toEnd();
});

if (transcript.childElementCount) toEnd();
