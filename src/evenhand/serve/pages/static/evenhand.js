// Makes the pages lively; every one of them works without it.
"use strict";

// Keys j and k move through the rows of a table, Enter opens the one that is marked.
const typing = (event) =>
  event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented ||
  /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

const markedRow = (table) => table.querySelector("tbody tr[aria-current]");

function moveInTable(table, step) {
  const rows = Array.from(table.tBodies[0].rows);
  const now = rows.indexOf(markedRow(table));
  const next = now < 0 ? 0 : now + step;
  if (next < 0 || next >= rows.length) return;
  if (now >= 0) rows[now].removeAttribute("aria-current");
  rows[next].setAttribute("aria-current", "true");
  rows[next].scrollIntoView({ block: "nearest" });
  const link = rows[next].querySelector("a");
  if (link) link.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  const table = document.querySelector("table[data-keys]");
  if (!step || !table || typing(event)) return;
  moveInTable(table, step);
  event.preventDefault();
});

// Links that a key stands for: next and previous pair, votes.
document.addEventListener("keydown", (event) => {
  if (typing(event) || event.repeat) return;
  const wanted = document.querySelector(`[data-key~="${CSS.escape(event.key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  wanted.click();
});

// What changes by itself: an element with data-live names where its news are. Every data-part of
// the answer takes the place of the one with its id; when nothing there is live any more, it ends.
const EVERY_MS = 1500;
const SLOWEST_MS = 15000;

async function newsOf(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function takeIn(news) {
  for (const part of news.querySelectorAll("[data-part][id]")) {
    const own = document.getElementById(part.id);
    if (!own || own.outerHTML === part.outerHTML || own.contains(document.activeElement)) continue;
    own.replaceWith(document.adoptNode(part));
  }
}

async function keepUp(address, wait) {
  await new Promise((done) => setTimeout(done, wait));
  if (document.hidden) return keepUp(address, EVERY_MS);
  let live = true;
  try {
    const news = await newsOf(address);
    takeIn(news);
    const still = Array.from(news.querySelectorAll("[data-live]"), (each) => each.dataset.live);
    live = still.includes(address);
    wait = EVERY_MS;
  } catch {
    wait = Math.min(2 * wait, SLOWEST_MS); // the server may be starting anew
  }
  if (live) return keepUp(address, wait);
  for (const each of document.querySelectorAll("[data-live]")) {
    if (each.dataset.live === address) each.removeAttribute("data-live");
  }
  // A run has come to its end: its figures are to be had now.
  if (/^\/runs\/[^/]+\/progress$/.test(address)) location.reload();
}

for (const each of new Set(
  Array.from(document.querySelectorAll("[data-live]"), (live) => live.dataset.live),
)) keepUp(each, EVERY_MS);

// On a small screen what is to be seen comes before what it can be filtered by.
if (matchMedia("(max-width: 40rem)").matches) {
  for (const each of document.querySelectorAll("details[data-fold]")) each.open = false;
}

// A page that is not there yet is asked for again, after so many seconds where it says.
const again = document.querySelector("[data-again]");
if (again) setTimeout(() => location.reload(), 1000 * Number(again.dataset.again) || EVERY_MS);

// A file that is dropped on a form is the one that it sends.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const input = form.querySelector("input[type=file]");
  const over = (event) => {
    event.preventDefault();
    form.classList.toggle("over", event.type === "dragover");
  };
  for (const kind of ["dragover", "dragleave", "dragend"]) form.addEventListener(kind, over);
  form.addEventListener("drop", (event) => {
    over(event);
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    input.focus();
  });
}

// What takes a while is sent once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.hasAttribute("data-sent")) {
    if (form.hasAttribute("data-sent")) event.preventDefault();
    return;
  }
  form.setAttribute("data-sent", "");
  form.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    form.removeAttribute("data-sent");
    form.removeAttribute("aria-busy");
  }
});
