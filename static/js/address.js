// The address says what the page shows: after a filter, a reload or a bookmark finds the same again.
document.addEventListener("htmx:afterSwap", () => {
  const shown = document.querySelector("[data-address]");
  if (shown) history.replaceState(null, "", shown.dataset.address);
});
