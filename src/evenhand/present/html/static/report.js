// The pairs of a report that is one file: filtered, searched, sorted and read in the browser. What
// people and models wrote becomes text nodes alone. A pair is what the pages' own template
// made of it; without this script the page shows the first pairs by itself.

(() => {
  const live = document.getElementById("live");
  if (!live) return;
  const parsed = (id) => JSON.parse(document.getElementById(id).textContent);
  const words = parsed("words");
  const table = parsed("table");
  const packed = document.getElementsByClassName("part");
  const [form] = live.getElementsByTagName("form");
  const [choose, status, list, reader] = ["choose", "found", "list", "reader"].map((id) => document.getElementById(id));
  const ROWS = 50;
  const KEPT_PARTS = 8;

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

  const named = (at) => (at < 0 ? null : table.names[at]);
  const pairs = table.pairs.map(
    ([number, id, label, voted, a, b, tags, begins, lengthA, lengthB, flag, part, at]) =>
      ({ number, id, label, voted, a: named(a), b: named(b), tags: tags.map((each) => table.tags[each]),
        begins, lengthA, lengthB, longer: lengthB - lengthA, flag, part, at }));
  const rows = table.rows.map(([pair, judge, ending, confidence, flags, orders, breakdown, reason], place) => {
    const [outcome, winner] = table.endings[ending];
    return { pair: pairs[pair], judge: table.judges[judge], outcome, winner, confidence, flags, reason, place,
      criteria: table.breakdowns[breakdown], orders: table.orders[orders],
      kind: outcome === "win" ? winner : outcome };
  });
  const models = new Set(pairs.map((pair) => JSON.stringify([pair.a, pair.b]))).size;

  // The filters that addresses of the served pages have, and what they mean there ----------------

  const ENDS = { valid: ["win", "tie", "inconsistent"], decided: ["win", "tie"], undecided: ["inconsistent", "invalid"] };
  const ORDERS = { agree: ["agree"], differ: ["first", "second", "split"], read: ["agree", "first", "second", "split"],
    first: ["first"], second: ["second"], either: ["first", "second"] };
  const NAMED = {
    two: (a, b) => a !== null && b !== null && a !== b, same: (a, b) => a !== null && a === b,
    one: (a, b) => (a === null) !== (b === null), none: (a, b) => a === null && b === null,
  };
  const ofLonger = (side, pair, longer) =>
    (side === "A" && (longer ? pair.longer < 0 : pair.longer > 0)) ||
    (side === "B" && (longer ? pair.longer > 0 : pair.longer < 0));
  const labelOf = (pair, query) => pair.label ?? (query.get("countVotes") === "true" ? pair.voted : null);
  const sided = (row, model, side, own) =>
    (row.pair.a === model && side === (own ? "A" : "B")) || (row.pair.b === model && side === (own ? "B" : "A"));
  const cameOut = (row, criterion, end, query) => row.criteria.some(([at, side]) =>
    (criterion === null || table.criteria[at] === criterion) &&
    (end === null || end === side ||
      (/^(model|other)$/.test(end) && sided(row, query.get("model"), side, end === "model"))));
  const flagged = (flag) => (row, value) => Boolean(row.flags & table.flags[flag]) === (value === "true");
  const FILTERS = {
    id: (row, value) => row.pair.id === value,
    outcome: (row, value) => row.outcome === value,
    winner: (row, value) => row.winner === value,
    ending: (row, value) => ENDS[value].includes(row.outcome),
    judge: (row, value) => row.judge === value,
    tag: (row, value) => row.pair.tags.includes(value),
    label(row, value, query) {
      const label = labelOf(row.pair, query);
      if (value === "longer" || value === "shorter") return ofLonger(label, row.pair, value === "longer");
      return value === "any" ? label !== null : value === "none" ? label === null : label === value;
    },
    disagrees(row, value, query) {
      if (row.flags & table.flags.byRule) return false;
      const label = labelOf(row.pair, query);
      const agrees = ENDS.decided.includes(row.outcome) && row.winner === label;
      return label !== null && agrees === (value === "false");
    },
    model(row, value, query) {
      const { a, b } = row.pair;
      const other = query.get("against");
      if (other === null) return a === value || b === value;
      return (a === value && b === other) || (a === other && b === value);
    },
    against: (row, value, query) => query.has("model") || row.pair.a === value || row.pair.b === value,
    modelWins: (row, value, query) => row.outcome === "win" && sided(row, query.get("model"), row.winner, value === "true"),
    named: (row, value) => NAMED[value](row.pair.a, row.pair.b),
    criterion: (row, value, query) => cameOut(row, value, query.get("criterionEnd"), query),
    criterionEnd: (row, value, query) => query.has("criterion") || cameOut(row, null, value, query),
    judgesDiffer: flagged("judgesDiffer"),
    noted: flagged("noted"),
    unread: flagged("unread"),
    abstained: flagged("abstained"),
    byRule: flagged("byRule"),
    flagged: (row, value) => (row.pair.flag !== null) === (value === "true"),
    orders: (row, value) => ORDERS[value].includes(row.orders),
    leans: (row, value) => ORDERS[value].includes(row.orders),
    longerWins: (row, value) => row.outcome === "win" && ofLonger(row.winner, row.pair, value === "true"),
    minLengthDifference: (row, value) => row.pair.longer >= Number(value),
    maxLengthDifference: (row, value) => row.pair.longer <= Number(value),
    minConfidence: (row, value) => row.confidence !== null && row.confidence >= Number(value),
    maxConfidence: (row, value) => row.confidence !== null && row.confidence <= Number(value),
    belowConfidence: (row, value) => row.confidence !== null && row.confidence < Number(value),
    hasConfidence: (row, value) => (row.confidence !== null) === (value === "true"),
  };

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
        const { prompt, a, b } = texts[pair.at].texts;
        // A sign that nobody searches for keeps texts apart.
        return [prompt, a, b].join("\u0000").toLowerCase();
      });
    }
    return searched[place];
  }
  async function matching(text, mine) {
    if (search.text === text) return search.found;
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean); // all of them, wherever they stand
    const found = new Set();
    for (let start = 0; start < members.length; start += AT_ONCE) {
      const places = [...members.keys()].slice(start, start + AT_ONCE);
      const all = await Promise.all(places.map(searchable));
      if (mine !== turn) return null;
      all.forEach((texts, at) => texts.forEach((each, place) => {
        if (wanted.every((word) => each.includes(word))) found.add(members[places[at]][place]);
      }));
      status.textContent = say("file.live.searching", { n: number(start + places.length), of: number(members.length) });
    }
    search = { text, found };
    return found;
  }

  // The chips of outcomes show how many each would leave of what the other filters let through.
  const chips = [...live.querySelectorAll("[data-outcome]")].map((chip) => {
    const kind = chip.dataset.outcome;
    const count = chip.appendChild(make("span", { class: "count" }));
    const [outcome, winner] = /^[AB]$/.test(kind) ? ["win", kind] : [kind === "all" ? "" : kind, ""];
    return { kind, chip, count, outcome, winner };
  });
  function showChips(query, left) {
    for (const { kind, chip, count, outcome, winner } of chips) {
      count.textContent = ` ${number(left.filter((row) => kind === "all" || row.kind === kind).length)}`;
      chip.href = addressOf(query, { outcome, winner, page: "" });
      const on = (query.get("outcome") || "") === outcome && (query.get("winner") || "") === winner;
      if (on) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    }
  }

  function showActive(query) {
    const set = [...query].filter(([key]) => key in words.filters);
    const removable = set.map(([key, value]) => {
      const [told, values] = words.filters[key];
      const without = Object.fromEntries([key, "page", ...(words.leaning[key] || [])].map((each) => [each, ""]));
      const shown = values?.[value] ?? value;
      return make("li", {}, make("a", { href: addressOf(query, without), "aria-label": `${say("filter.remove")} ${told}: ${shown}` },
        `${told}: `, name(shown), " ", make("span", { "aria-hidden": "true" }, "×")));
    });
    if (set.length) removable.push(make("li", {}, make("a", { href: "#pairs" }, say("filter.clear"))));
    document.getElementById("active").replaceChildren(...removable);
  }

  async function chosen(query, mine) {
    const text = (query.get("query") || "").trim();
    const found = text ? await matching(text, mine) : null;
    if (mine !== turn) return null;
    const tests = [...query].filter(([key]) => key in FILTERS);
    const meets = (row, those) => those.every(([key, value]) => FILTERS[key](row, value, query));
    const ends = ([key]) => key === "outcome" || key === "winner";
    const left = rows.filter((row) =>
      (!found || found.has(row.pair)) && meets(row, tests.filter((each) => !ends(each))));
    showChips(query, left);
    showActive(query);
    const down = query.get("descending") === "true" ? -1 : 1;
    const value = { confidence: (row) => row.confidence, length: (row) => row.pair.longer }[query.get("sort")]
      || ((row) => row.pair.number);
    // What has no value stands last, whichever way.
    return left.filter((row) => meets(row, tests.filter(ends))).sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one.place - other.place;
      return down * (a - b) || one.place - other.place;
    });
  }

  // The form of the served pages; what only links ask for is kept --------------------------------

  const controls = [...form.elements].filter((each) => each.name);
  function wanted() {
    const changes = { page: "", pair: "" };
    for (const each of controls) {
      const plain = each.name === "sort" && each.value === "number";
      changes[each.name] = (each.type === "checkbox" && !each.checked) || plain ? "" : each.value;
    }
    return addressOf(asked(), changes);
  }
  let typed = 0;
  form.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => { location.hash = wanted(); }, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typed);
    location.hash = wanted();
  });

  // The list ----------------------------------------------------------------------------------

  let shown = [];
  const [lines] = list.getElementsByTagName("table");
  const [pager] = list.getElementsByTagName("nav");
  const winnerOf = (winner) => make("span", { class: `outcome outcome-${winner}` }, say(`winner.${winner}`));
  const tagsOf = (pair) => pair.tags.map((tag) =>
    make("a", { class: "tag", href: addressOf(new URLSearchParams(), { tag }) }, name(tag)));

  function lineOf(row, query) {
    const { pair } = row;
    const cell = (label, attributes, ...children) => make("td", { "data-label": label, ...attributes }, ...children);
    const bare = (is, also = "") => ({ class: `${also}${is ? " bare" : ""}` });
    const marks = ["judgesDiffer", "noted", "unread", "abstained", "byRule"].filter((each) => row.flags & table.flags[each]);
    return make("tr", {},
      make("td", { class: "number lead" }, make("a", { href: addressOf(query, { pair: pair.number }),
        "aria-label": say("pairs.open", { number: number(pair.number) }) }, number(pair.number))),
      cell(say("pairs.verdict"), {}, make("span", { class: `outcome outcome-${row.kind}` }, say(`outcome.${row.kind}`))),
      make("td", { class: "what whole" }, name(pair.begins), make("span", { class: "why" },
        ...(models > 1 && pair.a !== null && pair.b !== null ? [name(pair.a), ` ${say("comparisons.against")} `, name(pair.b), " · "] : []),
        name(row.reason))),
      cell(say("sort.confidence"), bare(row.confidence === null, "number"), row.confidence === null ? "—" : row.confidence.toFixed(2)),
      "labelled" in lines.dataset ? cell(say("pairs.label"), bare(!pair.label, "label-of"), pair.label ? winnerOf(pair.label) : "—") : null,
      table.judges.length > 1 ? cell(say("filter.judge"), {}, name(row.judge)) : null,
      cell(say("sort.length"), { class: "number" }, `${number(pair.lengthA)} / ${number(pair.lengthB)}`),
      make("td", bare(!marks.length && !pair.tags.length && pair.flag === null, "marks-of"), make("span", { class: "marks" }, make("span", {},
        pair.flag === null ? null : make("span", { class: "flagged", role: "img", "aria-label": say("flag_pair.is"),
          title: pair.flag || say("flag_pair.is") }, "⚑"),
        ...marks.map((each) => make("small", {}, say(`flag.${each}`)))), make("span", {}, ...tagsOf(pair).slice(0, 3),
        pair.tags.length > 3 ? make("small", { title: pair.tags.slice(3).join(", ") }, `+${pair.tags.length - 3}`) : null))));
  }

  function showList(query) {
    const pages = Math.max(1, Math.ceil(shown.length / ROWS));
    const page = Math.min(pages, Math.max(1, Number.parseInt(query.get("page") || "1", 10) || 1));
    const here = shown.slice((page - 1) * ROWS, page * ROWS);
    const sort = query.get("sort") || "number";
    const falls = query.get("descending") === "true";
    for (const head of list.querySelectorAll("[data-sort]")) {
      const key = head.dataset.sort;
      const on = key === sort;
      head.href = addressOf(query, { sort: key === "number" ? "" : key, descending: on && !falls ? "true" : "", page: "" });
      head.dataset.sorted = on ? (falls ? "↓" : "↑") : "";
      head.parentElement.setAttribute("aria-sort", on ? (falls ? "descending" : "ascending") : "none");
    }
    const turned = (to, rel, key, word) => make("a", { rel, "data-key": key, href: addressOf(query, { page: to }) }, say(word));
    lines.tBodies[0].replaceChildren(...here.map((row) => lineOf(row, query)));
    lines.hidden = !here.length;
    pager.replaceChildren(...[
      page > 1 ? turned(page - 1, "prev", "p", "page.previous") : null,
      make("span", {}, here.length ? say("file.live.page", { n: number(page), of: number(pages) }) : say("pairs.none")),
      page < pages ? turned(page + 1, "next", "n", "page.next") : null,
    ].filter(Boolean));
    status.textContent = say("file.live.found", { n: number(shown.length), of: number(rows.length) });
  }

  function turnTo(place) {
    reader.hidden = place === list;
    if (reader.hidden) reader.replaceChildren();
    choose.hidden = list.hidden = place !== list;
    lines.toggleAttribute("data-keys", place === list); // keys are the pair's while it is read
  }

  // One pair whole ----------------------------------------------------------------------------

  // As it was written: every text of the pair in place of what was made of it.
  function asWritten(box, texts) {
    const names = ["prompt", "context", "reference"].filter((key) => key in texts);
    const boxes = [...box.querySelectorAll(".asked .response"), ...box.querySelectorAll(".side .response")];
    [...names, "a", "b"].forEach((key, at) =>
      boxes[at].replaceWith(make("pre", { class: "response", dir: "auto", tabindex: "0" }, texts[key])));
    box.querySelector(".marking")?.remove();
  }

  async function showPair(pair, query, mine) {
    const whole = (await part(pair.part))[pair.at];
    if (mine !== turn) return;
    const raw = query.get("view") === "raw";
    const order = [...new Set(shown.map((row) => row.pair))];
    const at = order.indexOf(pair);
    const step = (to, rel, key, sign, word) => (to && at >= 0
      ? make("a", { rel, "data-key": key, href: addressOf(query, { pair: to.number }), "aria-label": say(word) }, sign)
      : make("span", { class: "off", "aria-hidden": "true" }, sign));
    const change = (changes, word) => make("a", { href: addressOf(query, changes) }, say(word));
    const title = make("h3", { id: "pair-title", tabindex: "-1" }, `${say("pair.title", { number: number(pair.number) })} · `, name(pair.id));
    const again = reader.hidden || reader.dataset.pair !== String(pair.number);
    reader.dataset.pair = String(pair.number);
    const body = built(whole.html);
    if (raw) asWritten(body, whole.texts);
    reader.replaceChildren(
      make("div", { class: "bar" },
        make("span", { class: "step" }, step(order[at - 1], "prev", "k", "‹", "pair.previous"), title,
          step(order[at + 1], "next", "j", "›", "pair.next")),
        pair.label ? make("span", { class: "label-of" }, `${say("pairs.label")} `, winnerOf(pair.label)) : null,
        ...tagsOf(pair),
        change({ view: raw ? "" : "raw" }, raw ? "pair.rendered" : "pair.raw"),
        make("a", { class: "end", "data-key": "u Escape", href: addressOf(query, { pair: "", view: "" }) },
          `${say("pair.table")} `, make("kbd", {}, "u"))),
      body);
    turnTo(reader);
    if (!again) return;
    title.focus({ preventScroll: true });
    reader.scrollIntoView({ block: "start" });
  }

  // Going where the address says ----------------------------------------------------------------

  const heading = document.getElementById("pairs");
  let before = null;
  async function go() {
    if (before !== null && location.hash && !/^#pairs(\?|$)/.test(location.hash)) return; // elsewhere on the page
    const mine = ++turn;
    const query = asked();
    const wantsPair = query.get("pair");
    const filters = new URLSearchParams(query);
    for (const key of ["pair", "view"]) filters.delete(key);
    for (const each of controls) {
      if (each === document.activeElement) continue;
      if (each.type === "checkbox") each.checked = query.get(each.name) === "true";
      else each.value = query.get(each.name) || (each.name === "sort" ? "number" : "");
    }
    try {
      const key = filters.toString();
      if (key !== before) {
        const found = await chosen(filters, mine);
        if (found === null || mine !== turn) return;
        shown = found;
        before = key;
      }
      const pair = wantsPair && pairs.find((each) => String(each.number) === wantsPair);
      if (pair) {
        await showPair(pair, query, mine);
        return;
      }
      const came = location.hash && !live.contains(document.activeElement);
      turnTo(list);
      showList(filters);
      if (!came) return;
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "start" });
    } catch (error) {
      status.textContent = say("file.live.unreadable");
    }
  }

  if (typeof DecompressionStream === "undefined") {
    live.replaceChildren(make("p", { class: "error" }, say("file.live.unreadable")));
    live.hidden = false;
    return;
  }
  // Keys move through the pairs, wherever else there are tables.
  for (const each of document.querySelectorAll("table[data-keys]")) each.removeAttribute("data-keys");
  live.hidden = false;
  document.getElementById("plain").hidden = true;
  window.addEventListener("hashchange", go);
  go();
})();
