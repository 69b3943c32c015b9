// What only the browser knows about time: the person's zone, and how long the slice stays open.
document.getElementById("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";

function tick() {
  const age = document.getElementById("age");
  if (!age?.dataset.closes) return;
  const minutes = Math.ceil((Date.parse(age.dataset.closes) - Date.now()) / 60000);
  const words = minutes > 0 ? age.dataset.left.replace("%s", minutes) : age.dataset.over;
  if (age.textContent !== words) age.textContent = words;
}

window.setInterval(tick, 15000);
