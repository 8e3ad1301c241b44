// Judged texts of a report that is one file: Markdown as elements of a few kinds, and which words
// two texts do not share. Nothing here makes HTML of a text: every sign becomes a text node.
"use strict";

const texts = (() => {
  const LONGEST = 30000; // longer ones are shown as they were written
  const NESTED = 12;
  const LINK = /^(?:https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i;

  const element = (tag, look) => {
    const made = document.createElement(tag);
    if (look) made.className = look;
    return made;
  };

  // Character references ------------------------------------------------------------------------

  // By name, those that stand in the report's texts; a Map, since a name may be "constructor".
  let named = new Map();
  const REFERENCE = /&(?:#(?:[xX]([0-9a-fA-F]{1,6})|([0-9]{1,7}))|([a-zA-Z][a-zA-Z0-9]{1,31}));/y;
  const REFERENCES = new RegExp(REFERENCE, "g");

  // What Markdown allows by number: no controls, no halves, nothing that is no character.
  function signOf(code) {
    const never = code > 0x10ffff || (code & 0xfffe) === 0xfffe || (code >= 0xd800 && code <= 0xdfff) ||
      (code >= 0xfdd0 && code <= 0xfdef) || (code >= 0x7f && code <= 0x9f) ||
      (code < 0x20 && ![9, 10, 12, 13].includes(code));
    return String.fromCodePoint(never ? 0xfffd : code);
  }

  const meant = (whole, hex, decimal, name) => {
    if (name !== undefined) return named.has(name) ? named.get(name) : whole;
    return signOf(hex !== undefined ? Number.parseInt(hex, 16) : Number.parseInt(decimal, 10));
  };

  // Markdown, inside a line ---------------------------------------------------------------------

  function linked(address, look) {
    const made = element("a", look);
    made.setAttribute("href", address);
    made.setAttribute("rel", "noopener noreferrer nofollow");
    made.setAttribute("target", "_blank");
    return made;
  }

  // Blanks and quotes that were written as references stay inside the address.
  const addressOf = (written) => written.replace(REFERENCES, meant).replace(/[\s"<>\\^`{|}]/gu, encodeURIComponent);

  const MARKS = [["***", "em"], ["**", "strong"], ["__", "strong"], ["~~", "s"], ["*", "em"], ["_", "em"]];
  const WORD = /[\p{L}\p{N}]/u;
  const SPECIAL = /[\\`*_~[!<&\n]/g;

  // Where a mark that opens here is closed, or -1. `never` keeps what was looked for in vain.
  function closed(text, from, mark, never) {
    if (never.has(mark) || !text[from] || /\s/.test(text[from])) return -1;
    let at = text.indexOf(mark, from + 1);
    while (at > 0) {
      const inWord = mark[0] === "_" && WORD.test(text[at + mark.length] || "");
      const partOfLonger = mark.length === 1 && (text[at + 1] === mark || text[at - 1] === mark);
      if (!/\s/.test(text[at - 1]) && !inWord && !partOfLonger) return at;
      at = text.indexOf(mark, at + 1);
    }
    never.add(mark);
    return -1;
  }

  function inline(into, text, depth) {
    const never = new Set();
    let plain = "";
    let at = 0;
    const flush = () => {
      if (plain) into.append(document.createTextNode(plain));
      plain = "";
    };
    const put = (made, inner) => {
      flush();
      if (depth < NESTED) inline(made, inner, depth + 1);
      else made.append(document.createTextNode(inner));
      into.append(made);
    };
    const putText = (made, said) => {
      flush();
      made.append(document.createTextNode(said));
      into.append(made);
    };
    // A picture is not loaded; what is told of it is plain text.
    const described = (said) => {
      const box = element("span");
      if (depth < NESTED) inline(box, said, depth + 1);
      return box.textContent;
    };
    scan: while (at < text.length) {
      SPECIAL.lastIndex = at;
      const next = SPECIAL.exec(text);
      const stop = next ? next.index : text.length;
      plain += text.slice(at, stop);
      at = stop;
      if (!next) break;
      const sign = text[at];
      if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] || "")) {
        plain += text[at + 1];
        at += 2;
        continue;
      }
      if (sign === "&") {
        REFERENCE.lastIndex = at;
        const found = REFERENCE.exec(text);
        const said = found ? meant(...found) : "&";
        // In a node of its own: a blank that was written by number ends no line and breaks none.
        flush();
        into.append(document.createTextNode(said));
        at += found && said !== found[0] ? found[0].length : said.length;
        continue;
      }
      if (sign === "\n") {
        const broken = plain.endsWith("  ") || plain.endsWith("\\");
        plain = plain.replace(broken ? /(?: +|\\)$/ : / +$/, "");
        if (broken) { flush(); into.append(element("br")); } else plain += "\n";
        at += 1;
        continue;
      }
      if (sign === "`") {
        const fence = /^`+/.exec(text.slice(at, at + 40))[0];
        const end = never.has(fence) ? -1 : text.indexOf(fence, at + fence.length);
        if (end > 0) {
          flush();
          const code = element("code");
          code.append(document.createTextNode(text.slice(at + fence.length, end).replace(/\n/g, " ")));
          into.append(code);
          at = end + fence.length;
          continue;
        }
        never.add(fence);
        plain += fence;
        at += fence.length;
        continue;
      }
      if (sign === "[" || (sign === "!" && text[at + 1] === "[")) {
        const image = sign === "!";
        const found = /^!?\[([^[\]]{0,1000})\]\(\s*<?([^\s()<>]{0,2000})>?(?:\s+"[^"\n]{0,300}")?\s*\)/.exec(text.slice(at, at + 3500));
        const address = found ? addressOf(found[2]) : "";
        if (LINK.test(address)) {
          if (image) putText(linked(address, "image"), described(found[1]) || address);
          else put(linked(address, ""), found[1]);
          at += found[0].length;
          continue;
        }
      }
      if (sign === "<") {
        const found = /^<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/i.exec(text.slice(at, at + 2010));
        if (found) {
          putText(linked(found[1], ""), found[1]);
          at += found[0].length;
          continue;
        }
      }
      for (const [mark, tag] of MARKS) {
        if (!text.startsWith(mark, at)) continue;
        if (mark[0] === "_" && WORD.test(text[at - 1] || "")) break;
        const end = closed(text, at + mark.length, mark, never);
        if (end < 0) continue;
        const inner = text.slice(at + mark.length, end);
        put(element(tag), mark.length === 3 ? `**${inner}**` : inner);
        at = end + mark.length;
        continue scan;
      }
      plain += sign;
      at += 1;
    }
    flush();
  }

  // Markdown, block by block ----------------------------------------------------------------------

  const FENCE = /^ {0,3}(`{3,}|~{3,})/;
  const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
  const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
  const UNDERLINE = /^ {0,3}(?:(=)=*|(-)-*)\s*$/;
  const INDENTED = /^(?: {4}|\t)/;
  const QUOTE = /^ {0,3}> ?/;
  const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})(?=\S)|\s*$|\s)/;
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((each) => each.trim());
  const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

  function codeBlock(text) {
    const box = element("pre");
    box.tabIndex = 0;
    const code = element("code");
    code.append(document.createTextNode(`${text}\n`));
    box.append(code);
    return box;
  }

  function fenced(lines, at, into) {
    const fence = FENCE.exec(lines[at])[1];
    const body = [];
    for (at += 1; at < lines.length && !lines[at].trimStart().startsWith(fence); at += 1) body.push(lines[at]);
    into.append(codeBlock(body.join("\n")));
    return at + 1;
  }

  function listed(lines, at, into, depth) {
    const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
    const list = element(ordered ? "ol" : "ul");
    const first = ordered ? Number.parseInt(ITEM.exec(lines[at])[2], 10) : 1;
    if (first !== 1) list.setAttribute("start", String(first));
    while (at < lines.length) {
      const found = ITEM.exec(lines[at]);
      if (!found || RULE.test(lines[at]) || /\d/.test(found[2]) !== ordered) break;
      const indent = found[1].length + found[2].length + (found[3] || " ").length;
      const body = [lines[at].slice(indent)];
      for (at += 1; at < lines.length; at += 1) {
        const line = lines[at];
        const deep = line.search(/\S/) >= indent;
        if (line.trim() && !deep && (ITEM.test(line) || body.at(-1).trim() === "" || startsBlock(line))) break;
        body.push(deep ? line.slice(indent) : line.trimStart());
      }
      while (body.length && body.at(-1).trim() === "") body.pop();
      const item = element("li");
      blocks(item, body, depth + 1);
      // A list of single lines has no paragraphs.
      if (!body.some((line) => line.trim() === "")) {
        for (const each of [...item.children]) if (each.tagName === "P" && !each.className) each.replaceWith(...each.childNodes);
      }
      list.append(item);
    }
    into.append(list);
    return at;
  }

  function tabled(lines, at, into, depth) {
    const sides = cells(lines[at + 1]).map((each) => (each.startsWith(":") && each.endsWith(":") ? "to-center" : each.endsWith(":") ? "to-right" : ""));
    const made = element("table");
    const row = (line, tag) => {
      const own = element("tr");
      const given = cells(line);
      sides.forEach((look, place) => {
        const cell = element(tag, look);
        inline(cell, given[place] || "", depth);
        own.append(cell);
      });
      return own;
    };
    const head = element("thead");
    head.append(row(lines[at], "th"));
    const body = element("tbody");
    for (at += 2; at < lines.length && lines[at].includes("|") && lines[at].trim(); at += 1) body.append(row(lines[at], "td"));
    made.append(head, body);
    const box = element("div", "scroll");
    box.tabIndex = 0;
    box.append(made);
    into.append(box);
    return at;
  }

  const isTable = (lines, at) => lines[at].includes("|") && at + 1 < lines.length &&
    DIVIDER.test(lines[at + 1]) && cells(lines[at]).length === cells(lines[at + 1]).length;
  const startsBlock = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);

  function blocks(into, lines, depth) {
    if (depth > NESTED) {
      into.append(document.createTextNode(lines.join("\n")));
      return;
    }
    let at = 0;
    while (at < lines.length) {
      const line = lines[at];
      const heading = HEADING.exec(line);
      if (!line.trim()) at += 1;
      else if (INDENTED.test(line)) {
        const body = [];
        for (; at < lines.length && (INDENTED.test(lines[at]) || !lines[at].trim()); at += 1) body.push(lines[at].replace(INDENTED, ""));
        into.append(codeBlock(body.join("\n").trimEnd()));
      }
      else if (FENCE.test(line)) at = fenced(lines, at, into);
      else if (heading) {
        const made = element("p", `heading heading-${heading[1].length}`);
        inline(made, heading[2] || "", depth);
        into.append(made);
        at += 1;
      } else if (RULE.test(line)) {
        into.append(element("hr"));
        at += 1;
      } else if (QUOTE.test(line)) {
        const body = [];
        for (; at < lines.length && lines[at].trim() && (QUOTE.test(lines[at]) || !startsBlock(lines[at])); at += 1) body.push(lines[at].replace(QUOTE, ""));
        const made = element("blockquote");
        blocks(made, body, depth + 1);
        into.append(made);
      } else if (ITEM.test(line)) at = listed(lines, at, into, depth);
      else if (isTable(lines, at)) at = tabled(lines, at, into, depth);
      else {
        const body = [line];
        for (at += 1; at < lines.length && lines[at].trim() && !startsBlock(lines[at]) && !UNDERLINE.test(lines[at]) && !(ITEM.test(lines[at]) && !/^\s*\d*[02-9]\d*[.)]/.test(lines[at])) && !isTable(lines, at); at += 1) body.push(lines[at]);
        const under = UNDERLINE.exec(lines[at] || "");
        const made = element("p", under ? `heading heading-${under[1] === "=" ? 1 : 2}` : "");
        inline(made, body.map((each) => each.trimStart()).join("\n"), depth);
        into.append(made);
        at += under ? 1 : 0;
      }
    }
  }

  // A text in a box of its own: rendered, or as it was written.
  function shown(text, rendered) {
    const whole = rendered && text.length <= LONGEST;
    const box = element(whole ? "div" : "pre", whole ? "response markdown isolated" : "response isolated");
    box.setAttribute("dir", "auto");
    if (whole) {
      blocks(box, text.replace(/\r\n?/g, "\n").split("\n"), 0);
      box.normalize(); // words are compared whole
    } else {
      box.tabIndex = 0;
      box.append(document.createTextNode(text));
    }
    return box;
  }

  // What differs ------------------------------------------------------------------------------------

  const TOKEN = /[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]|[\p{L}\p{N}\p{M}]+|\s+|[^]/gu;
  const MOST_SIGNS = 200000;
  const MOST_STEPS = 3000; // of words to leave out or put in
  const LEAST_ALIKE = 0.15;
  const LEAST_MATCH = 3;

  // The shortest way from one list of words to the other (Myers 1986): pairs of places that match.
  function matches(a, b) {
    let from = 0;
    while (from < a.length && from < b.length && a[from] === b[from]) from += 1;
    let endA = a.length;
    let endB = b.length;
    while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) { endA -= 1; endB -= 1; }
    const [n, m] = [endA - from, endB - from];
    const middle = n && m ? shortest(a, b, from, n, m) : [];
    if (middle === null) return null;
    const same = [];
    for (let at = 0; at < from; at += 1) same.push([at, at]);
    const tail = [];
    for (let at = 0; endA + at < a.length; at += 1) tail.push([endA + at, endB + at]);
    return same.concat(middle, tail);
  }

  function shortest(a, b, from, n, m) {
    const most = Math.min(n + m, MOST_STEPS);
    const reach = new Int32Array(2 * most + 3);
    const middle = most + 1;
    const trail = [];
    for (let steps = 0; steps <= most; steps += 1) {
      trail.push(reach.slice(middle - steps - 1, middle + steps + 2));
      for (let line = -steps; line <= steps; line += 2) {
        const down = line === -steps || (line !== steps && reach[middle + line - 1] < reach[middle + line + 1]);
        let x = down ? reach[middle + line + 1] : reach[middle + line - 1] + 1;
        while (x < n && x - line < m && a[from + x] === b[from + x - line]) x += 1;
        reach[middle + line] = x;
        if (x >= n && x - line >= m) return walked(trail, from, n, m);
      }
    }
    return null;
  }

  function walked(trail, from, n, m) {
    const same = [];
    let [x, y] = [n, m];
    for (let steps = trail.length - 1; steps >= 0; steps -= 1) {
      const reach = trail[steps];
      const at = (line) => reach[line + steps + 1];
      const line = x - y;
      const before = line === -steps || (line !== steps && at(line - 1) < at(line + 1)) ? line + 1 : line - 1;
      const [toX, toY] = steps ? [at(before), at(before) - before] : [0, 0];
      while (x > toX && y > toY) { x -= 1; y -= 1; same.push([from + x, from + y]); }
      [x, y] = [toX, toY];
    }
    return same.reverse();
  }

  // Which words of each text are in both; null where marks would help nobody.
  function alike(a, b) {
    const same = matches(a, b);
    if (!same) return null;
    const marks = [new Uint8Array(a.length), new Uint8Array(b.length)];
    const isWord = (token) => /^[\p{L}\p{N}]/u.test(token);
    let shared = 0;
    for (let at = 0; at < same.length;) {
      let end = at + 1;
      while (end < same.length && same[end][0] === same[end - 1][0] + 1 && same[end][1] === same[end - 1][1] + 1) end += 1;
      const [first, last] = [same[at], same[end - 1]];
      const outer = (first[0] === 0 && first[1] === 0) || (last[0] === a.length - 1 && last[1] === b.length - 1);
      // A match this short between two differences is chance, and makes them hard to read.
      if (outer || a.slice(first[0], last[0] + 1).join("").trim().length >= LEAST_MATCH) {
        for (let place = at; place < end; place += 1) {
          marks[0][same[place][0]] = marks[1][same[place][1]] = 1;
          shared += isWord(a[same[place][0]]) ? 1 : 0;
        }
      }
      at = end;
    }
    const words = Math.max(a.filter(isWord).length, b.filter(isWord).length);
    const share = words ? shared / words : 1;
    return share < LEAST_ALIKE ? null : { share, marks };
  }

  function leaves(box) {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    return found;
  }

  function markIn(nodes, tokens, same) {
    let at = 0;
    nodes.forEach((node, place) => {
      const made = [];
      let run = "";
      let differs = false;
      const end = () => {
        if (!run) return;
        const text = document.createTextNode(run);
        if (differs) {
          const mark = element("mark");
          mark.append(text);
          made.push(mark);
        } else made.push(text);
        run = "";
      };
      for (const token of tokens[place]) {
        const now = !same[at];
        at += 1;
        if (now !== differs) end();
        differs = now;
        run += token;
      }
      end();
      node.replaceWith(...made);
    });
  }

  // Marks in both boxes what the other has not. The share of words in both, or null: no marks.
  function mark(boxA, boxB) {
    const nodes = [leaves(boxA), leaves(boxB)];
    const signs = nodes.map((own) => own.reduce((sum, node) => sum + node.data.length, 0));
    if (Math.max(...signs) > MOST_SIGNS) return null;
    const tokens = nodes.map((own) => own.map((node) => node.data.match(TOKEN) || []));
    const [a, b] = tokens.map((own) => own.flat());
    // Exchanged texts have exchanged differences: both are read from the same one.
    const turned = a.join("") > b.join("");
    const found = turned ? alike(b, a) : alike(a, b);
    if (!found) return null;
    if (turned) found.marks.reverse();
    nodes.forEach((own, side) => markIn(own, tokens[side], found.marks[side]));
    return found.share;
  }

  // What names mean, before anything is shown.
  function learn(meanings) {
    named = new Map(Object.entries(meanings));
  }

  return { learn, shown, mark };
})();
