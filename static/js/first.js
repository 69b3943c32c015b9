// Runs before the page is drawn: the style sheets may count on scripts from here on.
document.documentElement.classList.add("js");
