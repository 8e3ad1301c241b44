// Makes the pages lively; every one of them works without it.
"use strict";

// Keys j and k move through the rows of a table, Enter opens the one that is marked.
function moveByKeys(table) {
  const rows = Array.from(table.tBodies[0].rows);
  let at = -1;
  const mark = (next) => {
    if (next < 0 || next >= rows.length) return;
    if (at >= 0) rows[at].removeAttribute("aria-current");
    at = next;
    rows[at].setAttribute("aria-current", "true");
    rows[at].scrollIntoView({ block: "nearest" });
    const link = rows[at].querySelector("a");
    if (link) link.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "j") mark(at + 1);
    else if (event.key === "k") mark(at < 0 ? 0 : at - 1);
    else return;
    event.preventDefault();
  });
}

for (const table of document.querySelectorAll("table[data-keys]")) moveByKeys(table);

// Links that a key stands for: next and previous pair, votes.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const wanted = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  wanted.click();
});
