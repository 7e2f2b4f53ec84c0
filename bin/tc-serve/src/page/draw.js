// Draws what state.js holds. Each item of a session has one node, which is changed and never made again, so that focus, selection and open cards
// stay. All changes of a frame are drawn together. Texts go in by `textContent` alone: nothing that a model or a tool wrote is read as markup.

const $ = (id) => document.getElementById(id);

/** An element: `make("b", { className: "state" }, "running")`. */
function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Sets a text, if it is another one: a screen reader reads again what is written again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const show = (node, is) => (node.hidden = !is);
const timeOf = (ms) => (ms ? new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "");

/** How many items are in the document, and how many are added at an end of them. */
const [MOST, STEP] = [400, 150];

/** The nodes of the session that is shown. */
const view = { name: "talk" };

function openView(session, acts) {
  Object.assign(view, { session, acts, nodes: new Map(), from: 0, to: 0, isAtEnd: true, filter: null, kept: [], chosen: -1 });
  $("talk").replaceChildren();
}

/** Draws what has changed since the last frame. */
function drawSession() {
  const { session } = view;
  const count = session.items.length;
  if (view.isAtEnd) moveTo(Math.max(0, count - MOST), count);
  else moveTo(view.from, Math.max(view.to, Math.min(count, view.from + MOST)));
  for (const key of session.changed) {
    const shown = view.nodes.get(key);
    if (shown) shown.draw(session.items[key]);
  }
  session.changed.clear();
  show($("earlier"), view.name === "talk" && view.from > 0);
  show($("later"), view.name === "talk" && view.to < count);
  if (view.isAtEnd && view.name === "talk") $("pane").scrollTop = $("pane").scrollHeight;
  show($("latest"), view.name === "talk" && !view.isAtEnd && count > 0);
}

/** Puts the items from `from` to `to` into the document, and takes all others out. */
function moveTo(from, to) {
  const talk = $("talk");
  for (let key = view.from; key < view.to; key++) {
    if (key >= from && key < to) continue;
    view.nodes.get(key)?.node.remove();
    view.nodes.delete(key);
  }
  const first = view.nodes.get(Math.max(from, view.from))?.node ?? null;
  for (let key = from; key < to; key++) {
    if (view.nodes.has(key)) continue;
    const item = view.session.items[key];
    const drawn = DRAW[item.kind](item);
    view.nodes.set(key, drawn);
    drawn.draw(item);
    if (key < view.from) talk.insertBefore(drawn.node, first);
    else talk.append(drawn.node);
  }
  [view.from, view.to] = [from, to];
}

/** Notes whether the end is seen, so that the page follows it. Returns whether that has changed. */
function noteEnd() {
  const { scrollHeight, scrollTop, clientHeight } = $("pane");
  const was = view.isAtEnd;
  view.isAtEnd = scrollHeight - scrollTop - clientHeight < 40 && (was || view.to === view.session.items.length);
  return was !== view.isAtEnd;
}

/** Shows earlier or later items, and keeps what is seen where it is. */
function step(isLater) {
  const pane = $("pane");
  const anchor = view.nodes.get(isLater ? view.to - 1 : view.from)?.node;
  const before = anchor?.getBoundingClientRect().top ?? 0;
  const count = view.session.items.length;
  if (isLater) moveTo(Math.max(view.from, Math.min(view.to + STEP, count) - MOST), Math.min(view.to + STEP, count));
  else moveTo(Math.max(0, view.from - STEP), Math.min(view.to, Math.max(0, view.from - STEP) + MOST));
  if (anchor) pane.scrollTop += anchor.getBoundingClientRect().top - before;
  view.isAtEnd = false;
  drawSession();
}

const DRAW = { text: drawText, note: drawNote, call: drawCall, response: drawResponse };

function drawNote() {
  const node = make("p", { className: "note" });
  return { node, draw: ({ tone, text }) => {
    node.dataset.tone = tone;
    setText(node, safe(text));
  } };
}

/** A text in blocks: only the last block grows, and the others are not laid out again. */
function drawText({ voice }) {
  const node = make("div", { className: voice === "answer" ? "text prose" : "text" });
  node.dataset.voice = voice;
  const write = voice === "answer" ? (block, text) => block.replaceChildren(...prose(text)) : setText;
  let [block, done] = [null, 0];
  return { node, draw: ({ text }) => {
    for (let end; done < text.length; done = end) {
      end = blockEnd(text, done);
      const piece = text.slice(done, end < 0 ? text.length : end).replace(/^\n+|\n+$/g, "");
      if (piece) write((block ??= node.appendChild(make("div"))), safe(piece));
      if (end < 0) return;
      block = null;
    }
  } };
}

/** The end of the block from `from` on: an empty line, a fence, or many characters; -1 where the block may grow. */
function blockEnd(text, from) {
  const isCode = text.startsWith("```", from);
  const most = isCode ? 60000 : 4000;
  const end = (isCode ? /\n```\s*\n/ : /\n\n|\n(?=```)/).exec(text.slice(from, from + most));
  if (end) return from + end.index + end[0].length;
  if (text.length - from < most) return -1;
  const feed = text.lastIndexOf("\n", from + most);
  return feed > from ? feed + 1 : from + most;
}

/** The elements of a block of Markdown: code, headings, lists, paragraphs. All else stays as written. */
function prose(text) {
  const code = /^```.*\n?([^]*?)(\n```\s*)?$/.exec(text);
  if (code) return [make("pre", {}, code[1])];
  const all = [];
  for (const line of text.split("\n")) {
    const [, level, title] = /^(#{1,6}) +(.*)/.exec(line) ?? [];
    const [, indent, sign, item] = /^( *)([-*+]|\d+[.)]) +(.*)/.exec(line) ?? [];
    const tag = level ? "h2" : !sign ? "p" : /\d/.test(sign) ? "ol" : "ul";
    let last = all.at(-1);
    if (last?.localName !== tag || level) all.push((last = make(tag)));
    else if (tag === "p") last.append("\n");
    if (level) Object.assign(last, { className: "heading" }).dataset.level = level.length;
    if (!sign) {
      last.append(...spans(title ?? line));
      continue;
    }
    const point = make("li", {}, ...spans(item));
    if (tag === "ol") point.value = parseInt(sign);
    point.style.marginLeft = `${indent.length / 2}em`;
    last.append(point);
  }
  return all;
}

function spans(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (/^`.+`$/.test(piece)) return make("code", {}, piece.slice(1, -1));
    return /^\*\*.+\*\*$/.test(piece) ? make("strong", {}, piece.slice(2, -2)) : piece;
  });
}

function drawResponse(item) {
  const about = make("span");
  const node = make("p", { className: "answer" }, about);
  if (Object.hasOwn(PATHS, item.front)) node.append(make("button", { className: "quiet", onclick: () => view.acts.copy(item) }, "Copy as curl"));
  return { node, draw: () => setText(about, safe([item.model, item.front, timeOf(item.at), item.status].filter(Boolean).join(" · "))) };
}

/** The card of a call. What it holds is drawn where it is open. */
function drawCall({ call }) {
  const [state, name, short, figure] = [["b", "state"], ["code", "name"], ["span", "brief"], ["span", "figure"]].map(([tag, className]) => make(tag, { className }));
  const rows = make("dl");
  const node = make("details", { className: "card" }, make("summary", {}, state, name, short, figure), rows);
  let [acts, wanted, isOpened] = [undefined, "", false];
  const draw = () => {
    const word = status(call);
    node.dataset.state = word[0];
    setText(state, safe(word[1]));
    setText(name, safe(call.name) || "…");
    setText(short, call.brief);
    setText(figure, safe(figures(call, view.session.active && Date.now())));
    const wants = waits(call) ? call.hash : call.state === "running" ? "cancel" : "";
    if (wants !== wanted) {
      if (acts?.contains(document.activeElement)) node.firstChild.focus();
      acts?.remove();
      acts = wants ? node.appendChild(actsOf(call)) : undefined;
      wanted = wants;
    }
    if (waits(call) && !isOpened) node.open = isOpened = true;
    if (node.open) for (const [at, [title, text]] of rowsOf(call).entries()) drawRow(rows, at, title, text);
  };
  node.ontoggle = () => {
    draw();
    noteEnd();
  };
  return { node, draw };
}

/** What an open card has: titles and texts. */
function rowsOf(call) {
  const { state, result } = call;
  const [isArriving, isWaiting] = [state === "arriving", waits(call)];
  const growing = call.arguments.length > 4000 ? `…${call.arguments.slice(-4000)}` : call.arguments;
  return [
    ["arguments", isArriving ? growing : pretty(call.arguments)],
    ["waits because", isWaiting ? call.why : ""],
    ["hash", isWaiting ? call.hash : ""],
    ["refused because", state === "refused" ? call.summary : ""],
    ["output so far", state === "running" ? call.output : ""],
    ["result", result && result.status !== "pending" ? result.output || "(nothing)" : ""],
    ["the result is cut", typeof result?.cutFrom === "number" ? `it had ${bytesText(result.cutFrom)}` : ""],
    ["id", call.id],
  ];
}

function drawRow(rows, at, title, text) {
  while (rows.children.length <= 2 * at) rows.append(make("dt"), make("dd", {}, make("pre")));
  const [term, value] = [rows.children[2 * at], rows.children[2 * at + 1]];
  setText(term, title);
  setText(value.firstChild, safe(text));
  show(term, text);
  show(value, text);
}

/** What a person can do with a call: answer one that waits, cancel one that runs. While it is done nothing else is; the button is not disabled, which
    would take the focus from it. */
function actsOf(call) {
  const error = make("span", { className: "error", role: "alert" });
  const word = make("input", { autocomplete: "off", placeholder: "A word to the model (optional)", ariaLabel: `A word to the model about ${safe(call.name)}` });
  const button = (name, className, work) => make("button", { className, ariaLabel: `${name} ${safe(call.name)}`, onclick: async () => {
    if (box.ariaBusy) return;
    box.ariaBusy = true;
    setText(error, "");
    try { await work(); } catch (failure) {
      setText(error, safe(failure.message));
      box.ariaBusy = null;
    }
  } }, name);
  const decide = (verb) => () => view.acts.decide(call, verb, word.value.trim());
  const controls = waits(call)
    ? [word, button("Deny", "danger", decide("deny")), button("Approve", "main", decide("approve"))]
    : [button("Cancel call", "danger", () => view.acts.cancelCall(call))];
  const box = make("div", { className: "acts" }, ...controls, error);
  return box;
}

// ---- The timeline

function drawTime(now) {
  const time = $("time");
  const focus = [...time.querySelectorAll("button")].indexOf(document.activeElement);
  const shown = timeline(view.session, now).map(({ response, rows, total }) => {
    const title = [response && timeOf(response.at), response?.model, duration(total)].filter(Boolean).join(" · ");
    return make("section", {}, make("h2", {}, safe(title)), make("table", { className: "timeline" }, ...rows.map((row) => timeRow(row, 1000 / Math.max(total, 1)))));
  });
  time.replaceChildren(...shown);
  if (shown.length === 0) time.append(make("p", { className: "empty" }, "Nothing has run yet."));
  if (focus >= 0) time.querySelectorAll("button")[focus]?.focus();
}

/** A turn or a call, with a bar of which 1,000 is the whole width. */
function timeRow({ key, label, call, start, wait, length }, scale) {
  const first = wait + (call ? 0 : key.first);
  const bar = svg("svg", { viewBox: "0 0 1000 1", preserveAspectRatio: "none" });
  bar.append(svg("rect", { class: "wait", x: start * scale, width: first * scale, height: 1 }), svg("rect", { x: (start + first) * scale, width: Math.max(length * scale, 3), height: 1 }));
  const [state, word] = call ? status(call) : ["turn", [key.reason.replaceAll("_", " "), key.tokens !== null && `${key.tokens} tokens`].filter(Boolean).join(", ")];
  const name = call ? make("button", { className: "quiet", onclick: () => goTo(call.key) }, safe(label)) : label;
  const line = make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, bar), make("td", { className: "word" }, safe(word)), make("td", { className: "figure" }, duration(first + length)));
  line.dataset.state = state;
  return line;
}

function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Shows an item of the conversation, and opens its card. */
function goTo(key) {
  setView("talk");
  if (key < view.from || key >= view.to) moveTo(Math.max(0, key - STEP), Math.min(view.session.items.length, key + STEP));
  view.isAtEnd = false;
  const { node } = view.nodes.get(key);
  node.open = true;
  node.querySelector("summary")?.focus();
  node.scrollIntoView({ block: "center" });
}

// ---- Events: only the rows that can be seen are in the document

const ROW = 28;

function drawRaw() {
  const { lines } = view.session;
  const filter = $("filter").value.toLowerCase();
  if (filter !== view.filter) Object.assign(view, { filter, kept: [], looked: 0, chosen: -1 });
  for (; view.looked < lines.length; view.looked++) {
    if (filter === "" || lines[view.looked].text.toLowerCase().includes(filter)) view.kept.push(view.looked);
  }
  const room = $("room");
  const box = $("lines");
  setText($("count"), `${view.kept.length} of ${lines.length} events, ${bytesText(view.session.end)}`);
  room.style.height = `${view.kept.length * ROW}px`;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5);
  const some = view.kept.slice(first, first + Math.ceil(box.clientHeight / ROW) + 10);
  room.replaceChildren(...some.map((place, n) => {
    const row = make("div", { id: `row-${first + n}` }, make("b", {}, safe(lines[place].type)), make("code", {}, oneLine(lines[place].text, 300)));
    Object.assign(row, { role: "option", ariaSelected: view.chosen === first + n, ariaSetSize: view.kept.length, ariaPosInSet: first + n + 1, onclick: () => choose(first + n) });
    row.style.top = `${(first + n) * ROW}px`;
    return row;
  }));
  if (view.chosen >= 0) box.setAttribute("aria-activedescendant", `row-${view.chosen}`);
  else box.removeAttribute("aria-activedescendant");
}

/** Shows one event whole. */
function choose(at) {
  const box = $("lines");
  view.chosen = Math.max(0, Math.min(view.kept.length - 1, at));
  const line = view.session.lines[view.kept[view.chosen]];
  if (!line) return;
  setText($("line"), safe(pretty(line.text)));
  if (view.chosen * ROW < box.scrollTop) box.scrollTop = view.chosen * ROW;
  if ((view.chosen + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (view.chosen + 1) * ROW - box.clientHeight;
  drawRaw();
}

/** Shows the conversation, the timeline or the events. */
function setView(name) {
  view.name = name;
  for (const button of $("tools").querySelectorAll("[data-view]")) button.ariaPressed = button.dataset.view === name;
  for (const each of ["talk", "time", "raw"]) show($(each), each === name && view.session);
  setText($("line"), "");
  if (name === "time") drawTime(Date.now());
  schedule();
}

// ---- The list of sessions

/** Draws the list, the newest first; each session keeps its node. */
function drawList(sessions, nodes, current, now) {
  for (const [id, node] of nodes) {
    if (sessions.has(id)) continue;
    node.remove();
    nodes.delete(id);
  }
  const sorted = [...sessions.values()].sort((a, b) => b.created - a.created || (a.id < b.id ? 1 : -1));
  for (const [at, { id, title, modified, active, isLeft, pending }] of sorted.entries()) {
    if (!nodes.has(id)) nodes.set(id, make("li", {}, make("a", { href: `#${id}` }, make("span", { className: "title" }), make("span", { className: "when" }), make("b", { className: "mark" }))));
    const item = nodes.get(id);
    const link = item.firstChild;
    const [name, when, mark] = link.children;
    const count = pending.size;
    setText(name, safe(title) || "Untitled");
    setText(when, ago(now - modified));
    setText(mark, count > 0 ? waitsText(count) : !active ? "" : isLeft ? "interrupted" : "running");
    mark.dataset.state = count > 0 ? "waits" : isLeft ? "lost" : "running";
    link.ariaCurrent = id === current ? "page" : null;
    if ($("list").children[at] !== item) $("list").insertBefore(item, $("list").children[at] ?? null);
  }
}

const waitsText = (count) => (count === 1 ? "a call waits" : `${count} calls wait`);

function ago(ms) {
  if (ms < 60000) return "now";
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ago`;
  if (ms < 86400000) return `${Math.floor(ms / 3600000)} h ago`;
  return `${Math.floor(ms / 86400000)} d ago`;
}
