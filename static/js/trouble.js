// When the server cannot say itself what is wrong: a lost network, an ended session, an error page.
// Nothing of an error page is ever put into the conversation; typed text stays in the composer.
const place = document.getElementById("banner");

function show(name) {
  place.replaceChildren();
  const words = name && document.getElementById(`banner-${name}`);
  if (!words) return;
  const notice = words.content.cloneNode(true);
  notice.firstElementChild.dataset.banner = name;
  place.append(notice);
}

document.addEventListener("banner", (event) => {
  // A banner about the stream comes and goes by itself and leaves one about the composer alone.
  const own = place.querySelector("[data-banner]")?.dataset.banner ?? "stream";
  if (["", "stream"].includes(event.detail) && own !== "stream") return;
  show(event.detail);
});

// A refusal that our own views word comes with its place; it is shown there whatever its status.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400 && event.detail.xhr.getResponseHeader("HX-Retarget") === "#notices") {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});

document.addEventListener("htmx:responseError", (event) => {
  const code = event.detail.xhr.status;
  if (code === 401) show("signed-out");
  else if (code === 403) show("stale");
  else if (event.target.id === "composer") show("trouble");
});

document.addEventListener("htmx:sendError", (event) => {
  if (event.target.id === "composer") show("offline");
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id === "composer" && event.detail.successful) show("");
});

window.addEventListener("online", () => {
  if (place.querySelector("[data-banner=offline]")) show("");
});
