// Watch both passes of a comparison arrive. Without this the form is sent, and a page answers.
"use strict";

for (const form of document.querySelectorAll("form[data-try]")) {
  const exchange = form.querySelector("[data-exchange]");
  exchange.addEventListener("click", (event) => {
    event.preventDefault();
    const { responseA, responseB } = form.elements;
    [responseA.value, responseB.value] = [responseB.value, responseA.value];
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation();
    if (form.getAttribute("aria-busy") !== "true") watch(form);
  });
}

async function watch(form) {
  form.setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { accept: "application/x-ndjson" },
    });
  } catch {
    return form.submit(); // the page that comes says what is wrong
  }
  try {
    if (answer.redirected) return location.assign(answer.url); // somebody has to log in again
    const kind = answer.headers.get("content-type") || "";
    if (kind.startsWith("application/x-ndjson")) await takeInLines(answer.body.getReader());
    else takeInNews(await answer.text());
    document.getElementById("outcome").focus();
  } catch {
    document.getElementById("outcome").textContent = form.dataset.broken;
  } finally {
    form.removeAttribute("aria-busy");
  }
}

async function takeInLines(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += decoder.decode(value || new Uint8Array(), { stream: !done });
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) takeInNews(JSON.parse(line).html);
    if (done) return;
  }
}

// Every part of the news with an id takes the place of our own; nothing in it can run.
function takeInNews(html) {
  const news = new DOMParser().parseFromString(html, "text/html");
  const whole = news.getElementById("outcome");
  const parts = whole ? [whole] : Array.from(news.querySelectorAll("[id^=pass-]"));
  if (!parts.length) {
    const said = news.querySelector("main");
    const own = document.getElementById("outcome");
    if (said && own) own.replaceChildren(...said.childNodes);
  }
  for (const part of parts) {
    const own = document.getElementById(part.id);
    if (own) own.replaceWith(document.adoptNode(part));
  }
  if (whole) document.getElementById("outcome").scrollIntoView({ block: "nearest" });
}
