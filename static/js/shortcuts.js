// `?` outside a field lists the shortcuts.
document.addEventListener("keydown", (event) => {
  if (event.key !== "?" || event.isComposing || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  document.getElementById("shortcuts").togglePopover();
});
