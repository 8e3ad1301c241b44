// The pairs of a report that is one file: filtered, searched, sorted and read in the browser. What
// people and models wrote becomes text nodes alone. A pair is what the pages' own template
// made of it; without this script the page shows the first pairs by itself.

(() => {
  const live = document.getElementById("live");
  if (!live) return;
  const words = JSON.parse(document.getElementById("words").textContent);
  const table = JSON.parse(document.getElementById("table").textContent);
  const packed = document.getElementsByClassName("part");
  const ROWS = 50;
  const KEPT_PARTS = 8;
  const FLAGS = { disagrees: 1, differ: 2, noted: 4, abstained: 8 };
  const OUTCOMES = ["win", "tie", "inconsistent", "invalid"];

  // Texts and elements ------------------------------------------------------------------------

  const say = (key, values = {}) =>
    words[key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  const number = (value) => value.toLocaleString(document.documentElement.lang);

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }
  const name = (text) => make("bdi", {}, text);

  // What the pages' own template wrote, element by element: every text in it is escaped, so that a
  // sign that begins markup is the template's own.
  const SIGNS = { amp: "&", lt: "<", gt: ">", quot: '"', "#34": '"', "#39": "'" };
  const VOID = new Set(["br", "hr", "input"]);
  const unescaped = (text) => text.replace(/&(amp|lt|gt|quot|#34|#39);/g, (_, sign) => SIGNS[sign]);
  function built(html) {
    const open = [make("div")];
    for (const [, tag, text] of html.matchAll(/<([^>]*)>|([^<]+)/g)) {
      const within = open.at(-1);
      if (text !== undefined) {
        const begins = within.tagName === "PRE" && !within.firstChild;
        within.append(unescaped(begins ? text.replace(/^\n/, "") : text));
      } else if (tag.startsWith("/")) open.pop();
      else {
        const kind = /^\w+/.exec(tag)[0];
        const given = {};
        for (const [, key, value] of tag.slice(kind.length).matchAll(/([\w-]+)(?:="([^"]*)")?/g)) {
          given[key] = value === undefined ? true : unescaped(value);
        }
        const element = make(kind, given);
        within.append(element);
        if (!VOID.has(kind)) open.push(element);
      }
    }
    return open[0];
  }

  // The table's columns -----------------------------------------------------------------------

  const pairs = table.pairs.map(
    ([number, id, label, a, b, tags, begins, lengthA, lengthB, part, at]) =>
      ({ number, id, label, a, b, tags, begins, lengthA, lengthB, longer: lengthB - lengthA, part, at, rows: [] }));
  const rows = table.rows.map(([pair, judge, outcome, winner, won, confidence, flags], place) => {
    const row = { pair: pairs[pair], judge, outcome, winner, won, confidence, flags, place };
    pairs[pair].rows.push(row);
    return row;
  });
  const kind = (row) => (row.outcome === "win" ? row.winner : row.outcome);
  const badge = (key) => make("span", { class: `outcome outcome-${key}` }, say(`outcome.${key}`));

  // Parts, unpacked when they are needed --------------------------------------------------------

  const open = new Map();
  function decoded(text) {
    const signs = atob(text);
    const bytes = new Uint8Array(signs.length);
    for (let at = 0; at < signs.length; at += 1) bytes[at] = signs.charCodeAt(at);
    return bytes;
  }
  async function unpacked(place) {
    const bytes = decoded(packed[place].textContent);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  async function part(place) {
    if (!open.has(place)) {
      if (open.size >= KEPT_PARTS) open.delete(open.keys().next().value);
      open.set(place, await unpacked(place));
    }
    return open.get(place);
  }

  // What the address asks for ---------------------------------------------------------------

  const PREFIX = "#pairs?";
  const asked = () =>
    new URLSearchParams(location.hash.startsWith(PREFIX) ? location.hash.slice(PREFIX.length) : "");
  function addressOf(query, changes) {
    const next = new URLSearchParams(query);
    for (const [key, value] of Object.entries(changes)) {
      if (value === "" || value === null) next.delete(key);
      else next.set(key, value);
    }
    const text = next.toString();
    return text ? PREFIX + text : "#pairs";
  }

  // Search: over all texts, some parts at a time; texts stay unpacked for the next search --------

  const AT_ONCE = 8;
  const members = [];
  for (const pair of pairs) (members[pair.part] ||= []).push(pair);
  const searched = [];
  let search = { text: "", found: null };
  let turn = 0;
  async function searchable(place) {
    if (!searched[place]) {
      const texts = await unpacked(place);
      searched[place] = members[place].map((pair) => {
        const { prompt, a, b, context, reference } = texts[pair.at].texts;
        // A sign that nobody searches for keeps texts apart.
        return [pair.id, prompt, a, b, context, reference].filter(Boolean).join("\u0000").toLowerCase();
      });
    }
    return searched[place];
  }
  async function matching(text, mine) {
    if (search.text === text) return search.found;
    const wanted = text.toLowerCase();
    const found = new Set();
    for (let start = 0; start < members.length; start += AT_ONCE) {
      const places = [...members.keys()].slice(start, start + AT_ONCE);
      const all = await Promise.all(places.map(searchable));
      if (mine !== turn) return null;
      all.forEach((texts, at) => texts.forEach((each, place) => {
        if (each.includes(wanted)) found.add(members[places[at]][place]);
      }));
      status.textContent = say("searching", { n: number(start + places.length), of: number(members.length) });
    }
    search = { text, found };
    return found;
  }

  async function chosen(query, mine) {
    const outcome = query.get("outcome");
    const winner = query.get("winner");
    const judge = query.get("judge");
    const tag = query.get("tag");
    const flag = FLAGS[query.get("flag")] || 0;
    const won = winner === "TIE" ? -1 : table.names.indexOf(winner);
    const judgePlaces = new Set(table.judges.flatMap((each, at) => (each === judge ? [at] : [])));
    const tagPlace = table.tags.indexOf(tag);
    const text = (query.get("q") || "").trim();
    const found = text ? await matching(text, mine) : null;
    if (mine !== turn) return null;
    const kept = rows.filter((row) =>
      (!outcome || row.outcome === outcome) &&
      (winner === null || row.won === won) &&
      (judge === null || judgePlaces.has(row.judge)) &&
      (tag === null || row.pair.tags.includes(tagPlace)) &&
      (!flag || row.flags & flag) &&
      (!found || found.has(row.pair)));
    const sort = query.get("sort");
    const down = query.get("order") === "down" ? -1 : 1;
    const value = sort === "confidence" ? (row) => row.confidence
      : sort === "length" ? (row) => row.pair.longer : (row) => row.pair.number;
    // What has no value stands last, whichever way.
    return kept.sort((left, right) => {
      const [a, b] = [value(left), value(right)];
      if (a === null || b === null) return (a === null) - (b === null) || left.place - right.place;
      return down * (a - b) || left.place - right.place;
    });
  }

  // The filters -------------------------------------------------------------------------------

  const status = make("p", { role: "status", class: "quiet" });
  const list = make("div", {});
  const reader = make("article", { class: "reader", hidden: true, "aria-labelledby": "pair-title" });

  const options = (named) => [["", say("any")], ...named];
  const fields = {
    outcome: options(OUTCOMES.map((each) => [each, say(`outcome.${each}`)])),
    winner: options([...table.names.map((each) => [each, each]), ["TIE", say("outcome.TIE")]]),
    judge: table.judges.length > 1 ? options([...new Set(table.judges)].map((each) => [each, each])) : null,
    tag: table.tags.length ? options([...table.tags].sort().map((each) => [each, each])) : null,
    flag: options(Object.keys(FLAGS)
      .filter((each) => rows.some((row) => row.flags & FLAGS[each]))
      .map((each) => [each, say(`flag.${each}`)])),
    sort: [["", say("sort.number")], ["confidence", say("sort.confidence")], ["length", say("sort.length")]],
    order: [["", say("order.up")], ["down", say("order.down")]],
  };
  if (fields.flag.length === 1) fields.flag = null;
  const controls = {};
  const form = make("form", { class: "filters", role: "search", "aria-label": say("filters") });
  controls.q = make("input", { type: "search", name: "q", autocomplete: "off", "aria-keyshortcuts": "/" });
  form.append(make("label", {}, say("search"), controls.q));
  for (const [key, choices] of Object.entries(fields)) {
    if (!choices) continue;
    controls[key] = make("select", { name: key });
    for (const [value, shown] of choices) controls[key].append(make("option", { value }, shown));
    form.append(make("label", {}, say(`field.${key}`), controls[key]));
  }
  const clear = make("a", { class: "button", href: "#pairs" }, say("clear"));
  form.append(clear);

  const wanted = () => {
    const changes = {};
    for (const [key, control] of Object.entries(controls)) changes[key] = control.value;
    return addressOf(new URLSearchParams(), changes);
  };
  let typing = 0;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { location.hash = wanted(); }, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    location.hash = wanted();
  });

  // The list ----------------------------------------------------------------------------------

  let shown = [];
  let marked = -1;
  let lines = [];

  function lineOf(row, query) {
    const { pair } = row;
    const to = addressOf(query, { pair: pair.number });
    return make("tr", {},
      make("td", { class: "number" }, make("a", { href: to }, number(pair.number))),
      make("td", {}, name(pair.id)),
      table.judges.length > 1 ? make("td", {}, name(table.judges[row.judge])) : null,
      make("td", {}, badge(kind(row))),
      make("td", {}, row.won >= 0 ? name(table.names[row.won]) : "—"),
      make("td", { class: "number" }, row.confidence === null ? "—" : row.confidence.toFixed(2)),
      make("td", {}, pair.label ? winnerOf(pair.label) : "—"),
      make("td", {}, ...pair.tags.flatMap((at) => [make("span", { class: "tag" }, name(table.tags[at])), " "])),
      make("td", {}, name(pair.begins)));
  }

  function showList(query) {
    const pages = Math.max(1, Math.ceil(shown.length / ROWS));
    const page = Math.min(pages, Math.max(1, Number.parseInt(query.get("page") || "1", 10) || 1));
    const here = shown.slice((page - 1) * ROWS, page * ROWS);
    const heads = ["number", "id", table.judges.length > 1 ? "judge" : null, "outcome", "winner",
      "confidence", "label", "tags", "prompt"].filter(Boolean);
    lines = here.map((row) => lineOf(row, query));
    marked = -1;
    const caption = make("caption", {}, say("keys"));
    const head = make("tr", {}, ...heads.map((each) =>
      make("th", { scope: "col", class: /number|confidence/.test(each) ? "number" : null }, say(`head.${each}`))));
    const pager = make("nav", { class: "pager", "aria-label": say("pages") },
      page > 1 ? make("a", { class: "button", href: addressOf(query, { page: page - 1 }), rel: "prev" }, say("previous")) : null,
      make("span", {}, ` ${say("page", { n: number(page), of: number(pages) })} `),
      page < pages ? make("a", { class: "button", href: addressOf(query, { page: page + 1 }), rel: "next" }, say("next")) : null);
    const box = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": say("pairs") },
      make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...lines)));
    list.replaceChildren(...(here.length ? [box, pager] : [make("p", {}, say("none"))]));
    status.textContent = say("found", { n: number(shown.length), of: number(rows.length) });
  }

  function mark(next) {
    if (next < 0 || next >= lines.length) return;
    if (marked >= 0) lines[marked].removeAttribute("aria-current");
    marked = next;
    lines[marked].setAttribute("aria-current", "true");
    lines[marked].scrollIntoView({ block: "nearest" });
    lines[marked].querySelector("a").focus({ preventScroll: true });
  }

  // One pair whole ----------------------------------------------------------------------------

  const winnerOf = (winner) => make("span", { class: `outcome outcome-${winner}` }, say(`winner.${winner}`));

  // As it was written: every text of the pair in place of what was made of it.
  function asWritten(box, texts) {
    const names = ["prompt", "context", "reference"].filter((key) => key in texts);
    const boxes = [...box.querySelectorAll(".asked .response"), ...box.querySelectorAll(".side .response")];
    [...names, "a", "b"].forEach((key, at) =>
      boxes[at].replaceWith(make("pre", { class: "response", dir: "auto", tabindex: "0" }, texts[key])));
  }

  async function showPair(pair, query, mine) {
    const whole = (await part(pair.part))[pair.at];
    if (mine !== turn) return;
    const rendered = query.get("view") !== "raw";
    const marks = query.get("marks") !== "off";
    const order = [...new Set(shown.map((row) => row.pair))];
    const at = order.indexOf(pair);
    const step = (to, word, key) => (to ? make("a", { class: "button", href: addressOf(query, { pair: to.number }), "data-step": key }, say(word), " ", make("kbd", {}, key)) : null);
    const change = (changes, word) => make("a", { class: "button", href: addressOf(query, changes) }, say(word));
    const title = make("h3", { id: "pair-title", tabindex: "-1" }, `${say("pair.title", { number: number(pair.number) })} · `, name(pair.id));
    const again = reader.hidden || reader.dataset.pair !== String(pair.number);
    reader.dataset.pair = String(pair.number);
    const body = built(whole.html);
    if (!rendered) asWritten(body, whole.texts);
    if (!marks) body.querySelectorAll("mark").forEach((each) => each.replaceWith(...each.childNodes));
    reader.replaceChildren(
      make("nav", { class: "pager", "aria-label": say("pair_steps") },
        make("a", { class: "button", href: addressOf(query, { pair: "", view: "", marks: "" }), "data-step": "u" }, say("back"), " ", make("kbd", {}, "u")),
        step(order[at - 1], "previous", "k"), at >= 0 ? step(order[at + 1], "next", "j") : null,
        change({ view: rendered ? "raw" : "" }, rendered ? "pair.raw" : "pair.rendered"),
        change({ marks: marks ? "off" : "" }, marks ? "pair.unmarked" : "pair.marked")),
      title,
      make("p", {}, ...pair.tags.flatMap((tag) => [make("span", { class: "tag" }, name(table.tags[tag])), " "]),
        ...(pair.label ? [`${say("head.label")}: `, winnerOf(pair.label)] : [])),
      body);
    list.hidden = form.hidden = status.hidden = true;
    reader.hidden = false;
    if (!again) return;
    title.focus({ preventScroll: true });
    reader.scrollIntoView({ block: "start" });
  }

  // Going where the address says ----------------------------------------------------------------

  let before = null;
  async function go() {
    const mine = ++turn;
    const query = asked();
    const wantsPair = query.get("pair");
    const filters = new URLSearchParams(query);
    for (const key of ["pair", "view", "marks"]) filters.delete(key);
    for (const [key, control] of Object.entries(controls)) {
      if (document.activeElement !== control) control.value = query.get(key) || "";
    }
    try {
      const key = filters.toString();
      if (key !== before) {
        const found = await chosen(query, mine);
        if (found === null || mine !== turn) return;
        shown = found;
        before = key;
      }
      const pair = wantsPair && pairs.find((each) => String(each.number) === wantsPair);
      if (pair) {
        await showPair(pair, query, mine);
        return;
      }
      const back = !reader.hidden;
      reader.hidden = true;
      reader.replaceChildren();
      list.hidden = form.hidden = status.hidden = false;
      showList(filters);
      if (back) live.scrollIntoView({ block: "start" });
    } catch (error) {
      status.hidden = false;
      status.textContent = say("unreadable");
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (!reader.hidden) {
      const key = event.key === "Escape" ? "u" : event.key;
      const step = Array.from(reader.querySelectorAll("[data-step]")).find((each) => each.dataset.step === key);
      if (!step) return;
      event.preventDefault();
      step.click();
      return;
    }
    if (event.key === "j") mark(marked + 1);
    else if (event.key === "k") mark(marked < 0 ? 0 : marked - 1);
    else if (event.key === "/") controls.q.focus();
    else return;
    event.preventDefault();
  });

  if (typeof DecompressionStream === "undefined") {
    live.replaceChildren(make("p", { class: "error" }, say("unreadable")));
    live.hidden = false;
    return;
  }
  live.append(form, status, list, reader);
  live.hidden = false;
  document.getElementById("plain").hidden = true;
  window.addEventListener("hashchange", go);
  go();
})();
