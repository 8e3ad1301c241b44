// Makes the pages lively; every one of them works without it.
"use strict";

// Keys j and k move through the rows of a table, Enter opens the one that is marked.
const typing = (event) =>
  event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented ||
  /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

const markedRow = (within) => within.querySelector("tbody tr[aria-current]");

function markRow(table, row) {
  const now = markedRow(table);
  if (now) now.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
}

function moveInTable(table, step) {
  const rows = Array.from(table.tBodies[0].rows);
  const now = rows.indexOf(markedRow(table));
  const next = now < 0 ? 0 : now + step;
  if (next < 0 || next >= rows.length) return;
  markRow(table, rows[next]);
  rows[next].scrollIntoView({ block: "nearest" });
  const link = rows[next].querySelector("a");
  if (link) link.focus({ preventScroll: true });
  if (document.querySelector("[data-split].is-open")) openBeside(link);
}

document.addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  const table = document.querySelector("table[data-keys]");
  if (!step || !table || typing(event)) return;
  moveInTable(table, step);
  event.preventDefault();
});

// Where there is room, a pair that is clicked opens beside the list, which keeps its place. The row
// and that it is open are in the address: a page that is loaded anew, or come back to, has both.
const ROOM = matchMedia("(min-width: 75rem)");

function keepPlace(row, beside) {
  const address = new URL(location.href);
  address.hash = row.id;
  if (beside) address.searchParams.set("beside", "1");
  else address.searchParams.delete("beside");
  history.replaceState(null, "", address);
}

async function openBeside(link) {
  const split = link.closest("[data-split]");
  const row = link.closest("tr");
  const own = split.querySelector(".opened");
  let pair;
  try {
    pair = (await newsOf(link.href)).getElementById("pair");
  } catch { /* told by the page itself */ }
  if (!pair) return location.assign(link.href);
  // Its keys are those of the page that it is alone on.
  for (const each of pair.querySelectorAll("[data-key]")) each.removeAttribute("data-key");
  pair.querySelectorAll(".step a, .step .off").forEach((each) => each.remove());
  const alone = pair.querySelector(".bar .end");
  const address = new URL(link.href);
  address.searchParams.set("beside", "1"); // the way back leads here
  alone.href = address;
  alone.textContent = own.dataset.alone;
  const close = document.createElement("button");
  close.className = "plain";
  close.textContent = own.dataset.close;
  close.addEventListener("click", () => closeBeside(split));
  alone.after(close);
  own.replaceChildren(document.adoptNode(pair));
  own.scrollTop = 0;
  split.classList.add("is-open");
  markRow(row.closest("table"), row);
  keepPlace(row, true);
}

function closeBeside(split) {
  split.classList.remove("is-open");
  keepPlace(markedRow(split), false);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-split] td.lead a");
  const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!link || !plain) return;
  // A key that presses the link opens the pair alone: it is a click without a place.
  if (!ROOM.matches || event.detail === 0) return keepPlace(link.closest("tr"), false);
  event.preventDefault();
  openBeside(link);
});
document.addEventListener("keydown", (event) => {
  const split = document.querySelector("[data-split].is-open");
  if (event.key === "Escape" && split && !typing(event)) closeBeside(split);
});
// A flag that is set beside the list leaves the list where it is.
document.addEventListener("submit", async (event) => {
  const form = event.target.closest(".opened .flag form");
  if (!form) return;
  event.preventDefault();
  const row = markedRow(form.closest("[data-split]"));
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const answer = await fetch(form.action, { method: "POST", body });
  const own = answer.ok && (await newsOf(location.href)).getElementById(row.id);
  if (own) row.replaceWith(document.adoptNode(own));
  openBeside((own || row).querySelector("td.lead a"));
});
// Not before the browser has gone to the row itself, which takes the focus away.
addEventListener("load", () => {
  const row = location.hash && document.querySelector(`[data-split] tr[id="${CSS.escape(location.hash.slice(1))}"]`);
  if (!row) return;
  const link = row.querySelector("td.lead a");
  markRow(row.closest("table"), row);
  row.scrollIntoView({ block: "center" });
  // What is being filled is replaced as a whole, unless somebody is in it.
  if (!row.closest("[data-live]")) link.focus({ preventScroll: true });
  if (ROOM.matches && new URLSearchParams(location.search).has("beside")) openBeside(link);
});

// The slash leads to the search, as in other lists.
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("form[role=search] input[type=search]");
  if (event.key !== "/" || !search || typing(event)) return;
  event.preventDefault();
  search.focus();
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

// A page that is not there yet is asked for again, after so many seconds where it says.
const again = document.querySelector("[data-again]");
if (again) setTimeout(() => location.reload(), 1000 * Number(again.dataset.again) || EVERY_MS);

// A file that is dropped on a form is the one that it sends; of two fields, one each, the first that
// has none before the others.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const inputs = [...form.querySelectorAll("input[type=file]")];
  const over = (event) => {
    event.preventDefault();
    form.classList.toggle("over", event.type === "dragover");
  };
  for (const kind of ["dragover", "dragleave", "dragend"]) form.addEventListener(kind, over);
  form.addEventListener("drop", (event) => {
    over(event);
    const dropped = [...event.dataTransfer.files].slice(0, inputs.length);
    const free = dropped.length < inputs.length ? inputs.filter((each) => !each.files.length) : inputs;
    dropped.forEach((file, place) => {
      const input = free[place] ?? inputs[place];
      const held = new DataTransfer();
      held.items.add(file);
      input.files = held.files;
      input.focus();
    });
    if (dropped.length) inputs[0].dispatchEvent(new Event("change", { bubbles: true }));
  });
}

// What files hold and would take is shown as soon as all are chosen, unless they are large.
const LOOKED_AT_BYTES = 20 * 2 ** 20;
for (const form of document.querySelectorAll("form[data-preview]")) {
  form.addEventListener("change", async (event) => {
    if (event.target.type !== "file") return;
    const files = Array.from(form.querySelectorAll("input[type=file]"), (each) => each.files[0]);
    if (files.some((each) => !each || each.size > LOOKED_AT_BYTES)) return;
    const body = new FormData(form);
    body.set("act", "preview");
    const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } });
    const news = new DOMParser().parseFromString(await answer.text(), "text/html");
    const wrong = news.getElementById("wrong");
    const own = document.getElementById("preview");
    own.replaceChildren();
    if (wrong) own.append(document.adoptNode(wrong));
    else takeIn(news);
  });
}

// A conclusion as Markdown is there to be copied by hand; a script can do it too.
document.addEventListener("toggle", (event) => {
  const button = event.target.querySelector?.(":scope > [data-copy]");
  if (button) button.hidden = false;
}, true);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.parentElement.querySelector("textarea");
  text.select();
  let done = false;
  try {
    // A browser offers its clipboard to secure pages alone, and may be told not to.
    await navigator.clipboard.writeText(text.value);
    done = true;
  } catch {
    text.select();
    done = document.execCommand("copy");
  }
  button.textContent = done ? button.dataset.copy : button.dataset.refused;
});

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
