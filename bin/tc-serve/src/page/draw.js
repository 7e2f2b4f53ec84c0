// Draws what state.js holds. Each item of a session has one node, which is changed and never made again, so that focus, selection and open cards
// stay. All changes of a frame are drawn together. Texts go in by `textContent` alone: nothing that a model or a tool wrote is read as markup.

const $ = (id) => document.getElementById(id);

/** An element: `make("b", { className: "state" }, "running")`. */
function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Sets a text, if it is another one: a screen reader reads a node again that was written again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const show = (node, is) => (node.hidden = !is);
const timeOf = (ms) => (ms ? new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "");

/** How many items are in the document, and how many are added at an end of them. */
const [MOST, STEP] = [400, 150];

/** The nodes of the session that is shown. */
const view = { session: null, nodes: new Map(), from: 0, to: 0, isAtEnd: true, name: "talk", opened: new Set(), acts: {} };

function openView(session, acts) {
  Object.assign(view, { session, nodes: new Map(), from: 0, to: 0, isAtEnd: true, opened: new Set(), acts, kept: [], chosen: -1 });
  $("talk").replaceChildren();
}

/** Draws what has changed since the last frame. */
function drawSession() {
  const { session } = view;
  const count = session.items.length;
  if (view.isAtEnd) moveTo(Math.max(0, Math.min(view.from, count), count - MOST), count);
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

/** A text, in blocks: only the last one grows, so that a long answer is not laid out again for each word. */
function drawText(item) {
  const node = make("div", { className: "text" });
  node.dataset.voice = item.voice;
  const blocks = [];
  let done = 0;
  const write = (at, text) => {
    blocks[at] ??= node.appendChild(make("div"));
    setText(blocks[at], safe(text));
  };
  let at = 0;
  return { node, draw: ({ text }) => {
    for (let cut; (cut = blockEnd(text, done)) > 0; done = cut) write(at++, text.slice(done, cut).replace(/\n+$/, ""));
    if (done < text.length) write(at, text.slice(done));
  } };
}

/** The end of the block that begins at `from`, if it has ended: behind an empty line, or a long one. */
function blockEnd(text, from) {
  const end = text.indexOf("\n\n", from);
  if (end >= 0 && end - from < 4000) return end + 2;
  if (text.length - from < 4000) return -1;
  const feed = text.lastIndexOf("\n", from + 4000);
  return feed > from ? feed + 1 : from + 4000;
}

function drawResponse(item) {
  const about = make("span");
  const copy = make("button", { className: "quiet" }, "Copy as curl");
  copy.onclick = () => view.acts.copy(item);
  const node = make("p", { className: "answer" }, about, copy);
  return { node, draw: (item) => setText(about, [item.model, item.front, timeOf(item.at), item.status.replaceAll("_", " ")].filter(Boolean).map(safe).join(" · ")) };
}

/** The card of a call. */
function drawCall({ call }) {
  const parts = {
    state: make("b", { className: "state" }), name: make("code", { className: "name" }), brief: make("span", { className: "brief" }), figure: make("span", { className: "figure" }),
  };
  const body = make("dl");
  const card = make("details", { className: "card" }, make("summary", {}, ...Object.values(parts)), body);
  const rows = new Map();
  const row = (name, text, isShown = text !== "") => {
    if (!rows.has(name) && isShown) {
      const value = make("pre");
      rows.set(name, { value, all: [make("dt", {}, name), make("dd", {}, value)] });
      body.append(...rows.get(name).all);
    }
    const known = rows.get(name);
    if (!known) return;
    for (const each of known.all) show(each, isShown);
    if (isShown) setText(known.value, safe(text));
  };
  let acts = null;
  card.ontoggle = () => draw({ call });
  const draw = ({ call }) => {
    const [state, word] = status(call);
    card.dataset.state = state;
    setText(parts.state, safe(word));
    setText(parts.name, safe(call.name || "…"));
    setText(parts.brief, brief(call.arguments));
    setText(parts.figure, safe(figures(call)));
    if (waits(call) && !view.opened.has(call.key)) {
      view.opened.add(call.key);
      card.open = true;
    }
    const wants = waits(call) ? "decide" : call.state === "running" ? "cancel" : "";
    if (acts?.dataset.for !== wants + call.hash) {
      acts?.remove();
      acts = wants ? (wants === "decide" ? decideActs(call) : cancelActs(call)) : null;
      if (acts) {
        acts.dataset.for = wants + call.hash;
        card.append(acts);
      }
    }
    if (!card.open) return;
    const isArriving = call.state === "arriving";
    row("arguments", isArriving ? call.arguments : pretty(call.arguments), call.arguments !== "");
    row("waits because", waits(call) ? call.why : "");
    row("hash", waits(call) ? call.hash : "");
    row("refused because", call.state === "refused" ? call.summary : "");
    row("output so far", call.state === "running" ? call.output : "");
    row("result", call.result && call.result.status !== "pending" ? call.result.output || "(no output)" : "");
    row("result is cut", call.result?.isTruncated ? `of ${bytesText(call.result.bytes ?? 0)}` : "");
    row("id", call.id);
  };
  return { node: card, draw };
}

function cancelActs(call) {
  const button = make("button", { className: "danger" }, "Cancel call");
  button.setAttribute("aria-label", `Cancel the call ${safe(call.name)}`);
  const error = make("span", { className: "error" });
  error.setAttribute("role", "alert");
  button.onclick = () => act([button], error, () => view.acts.cancelCall(call));
  return make("div", { className: "acts" }, button, error);
}

function decideActs(call) {
  const reason = make("input", { autocomplete: "off", placeholder: "A word to the model (optional)" });
  reason.setAttribute("aria-label", `A word to the model about ${safe(call.name)}`);
  const error = make("span", { className: "error" });
  error.setAttribute("role", "alert");
  const button = (verb, word, className) => {
    const made = make("button", { className }, word);
    made.setAttribute("aria-label", `${word} ${safe(call.name)}`);
    made.onclick = () => act([approve, deny, reason], error, () => view.acts.decide(call, verb, reason.value.trim()));
    return made;
  };
  const approve = button("approve", "Approve", "main");
  const deny = button("deny", "Deny", "danger");
  return make("div", { className: "acts" }, reason, deny, approve, error);
}

/** Does something once: the controls wait for it, and come back with the reason where it failed. */
async function act(controls, error, work) {
  for (const control of controls) control.disabled = true;
  setText(error, "");
  try {
    await work();
  } catch (failure) {
    setText(error, safe(failure.message));
    for (const control of controls) control.disabled = false;
  }
}

// ---- The timeline

function drawTime(now) {
  const shown = timeline(view.session, now).map((section) => {
    const title = [section.item ? timeOf(section.item.at) : "", section.label, duration(section.total)].filter(Boolean).join(" · ");
    const table = make("table", { className: "timeline" }, ...section.rows.map((row) => timeRow(row, 1000 / Math.max(section.total, 1))));
    return make("section", {}, make("h3", {}, safe(title)), table);
  });
  const time = $("time");
  const focus = [...time.querySelectorAll("button")].indexOf(document.activeElement);
  time.replaceChildren(...(shown.length > 0 ? shown : [make("p", { className: "empty" }, "Nothing has run yet.")]));
  if (focus >= 0) time.querySelectorAll("button")[focus]?.focus();
}

/** A turn or a call, as a bar of which a thousand is the whole width. */
function timeRow(row, scale) {
  const name = make("th", { scope: "row" }, row.item === null ? safe(row.label) : make("button", { className: "quiet", onclick: () => goTo(row.item) }, safe(row.label)));
  const begin = row.start + row.wait + row.first;
  const bar = svg("svg", { viewBox: "0 0 1000 1", preserveAspectRatio: "none" });
  bar.append(svg("rect", { class: "wait", x: row.start * scale, width: (begin - row.start) * scale, height: 1 }));
  bar.append(svg("rect", { x: begin * scale, width: Math.max(row.length * scale, 3), height: 1 }));
  const cell = (className, text) => make("td", { className }, text);
  const line = make("tr", {}, name, make("td", {}, bar), cell("word", safe(row.word)), cell("figure", duration(row.wait + row.first + row.length)));
  line.dataset.state = row.state || "turn";
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
  if (filter !== view.filter) [view.filter, view.kept, view.looked, view.chosen] = [filter, [], 0, -1];
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
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", String(view.chosen === first + n));
    row.setAttribute("aria-setsize", view.kept.length);
    row.setAttribute("aria-posinset", first + n + 1);
    row.style.top = `${(first + n) * ROW}px`;
    row.onclick = () => choose(first + n);
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
  for (const button of $("tools").querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === name));
  for (const each of ["talk", "time", "raw"]) show($(each), each === name && view.session);
  if (view.session) drawSession();
  if (name === "time") drawTime(Date.now());
  if (name === "raw") {
    setText($("line"), "");
    drawRaw();
  }
}

// ---- The list of sessions

/** Draws the list, the newest first; each session keeps its node. */
function drawList(sessions, nodes, current, now) {
  const sorted = [...sessions.values()].sort((a, b) => b.created - a.created || (a.id < b.id ? 1 : -1));
  for (const [id, { item }] of nodes) {
    if (sessions.has(id)) continue;
    item.remove();
    nodes.delete(id);
  }
  let before = null;
  for (const entry of sorted) {
    if (!nodes.has(entry.id)) {
      const [title, about, mark] = [make("span", { className: "title" }), make("span", { className: "when" }), make("b", { className: "mark" })];
      const link = make("a", { href: `#${entry.id}` }, title, about, mark);
      nodes.set(entry.id, { item: make("li", {}, link), link, title, about, mark });
    }
    const { item, link, title, about, mark } = nodes.get(entry.id);
    setText(title, safe(entry.title) || "Untitled");
    setText(about, ago(now - entry.modified));
    const count = entry.pending.size;
    setText(mark, count > 0 && entry.active ? (count === 1 ? "waits for you" : `${count} calls wait`) : entry.active ? "running" : "");
    mark.dataset.state = count > 0 ? "waits" : "running";
    if (entry.id === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    const place = before ? before.nextSibling : $("list").firstChild;
    if (place !== item) $("list").insertBefore(item, place);
    before = item;
  }
}

function ago(ms) {
  if (ms < 60000) return "now";
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ago`;
  if (ms < 86400000) return `${Math.floor(ms / 3600000)} h ago`;
  return `${Math.floor(ms / 86400000)} d ago`;
}
