// The page: asks the service, follows it, and does what a person wants. One stream has the events of all sessions of the key, since a browser
// has six connections for a server. What the stream does not have (what was written before, or while it was cut) is read from the file of the
// session, from the byte where the page ends.

const key = takeKey();
const sessions = new Map();
const items = new Map();
/** What is shown, and how it is followed. */
const page = { current: "", tries: 0 };

/** The key comes in the fragment, which no server gets, and stays in this tab. */
function takeKey() {
  const found = /^#key=(.+)$/.exec(location.hash);
  if (found) {
    // What has not the form of a key is left.
    try { sessionStorage.setItem("key", decodeURIComponent(found[1])); } catch {}
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("key") ?? "";
}

/** Asks the service. */
async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (key) headers.authorization = `Bearer ${key}`;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", body: options.body && JSON.stringify(options.body) });
  if (answer.ok) return answer;
  if (answer.status === 401) showDoor(key ? "The service does not know this key." : "");
  let message = `${answer.status} ${answer.statusText}`;
  // Without a message the status is all there is.
  try { message = string((await answer.json()).error.message) || message; } catch {}
  throw Object.assign(new Error(message), { status: answer.status });
}

/** Asks for what is shown; ends with the stream that follows it. */
const read = (path) => ask(path, { signal: page.follower?.signal });
const post = (path, body = {}) => ask(path, { method: "POST", body });
const pathOf = (id, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;

function showDoor(why) {
  setText($("refused"), why);
  show($("door"), true);
  show($("app"), false);
  $("key").focus();
}

// ---- Following

/** Follows all sessions until the tab is hidden or the stream breaks; then tries again. */
async function follow() {
  if (page.follower || document.hidden) return;
  clearTimeout(page.timer);
  const stop = new AbortController();
  Object.assign(page, { follower: stop, looked: null, heard: Date.now() });
  setLink("connecting");
  // A lost connection may stay open, after sleep or behind a silent network. The service sends signs of life.
  const watch = setInterval(() => Date.now() - page.heard > 60000 && stop.abort(), 5000);
  try {
    const answer = await read("/v1/sessions/events");
    // The stream has what is written from now on; what was written before is read after that.
    await Promise.all([readList(), catchUp()]);
    page.tries = 0;
    setLink("live", "done");
    for await (const line of linesOf(answer.body)) if (line.length > 0) takeLine(line);
  } catch (error) {
    if (error.status === 401) return;
  } finally {
    clearInterval(watch);
  }
  if (page.follower !== stop) return;
  page.follower = null;
  if (document.hidden) return;
  page.tries += 1;
  const wait = Math.min(10000, 250 * 2 ** page.tries);
  setLink(`offline, tries again in ${Math.ceil(wait / 1000)} s`, "failed");
  page.timer = setTimeout(follow, wait);
}

function pause() {
  const follower = page.follower;
  page.follower = null;
  clearTimeout(page.timer);
  follower?.abort();
  setLink("paused");
}

function setLink(word, state = "") {
  setText($("link"), word);
  $("link").dataset.state = state;
}

/** The lines of a body, as bytes. */
async function* linesOf(body) {
  let rest = new Uint8Array();
  for (const reader = body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    page.heard = Date.now();
    let from = 0;
    for (let feed; (feed = value.indexOf(10, from)) >= 0; from = feed + 1) {
      const line = value.subarray(from, feed);
      if (rest.length === 0) yield line;
      else yield joined(rest, line);
      rest = new Uint8Array();
    }
    if (from < value.length) rest = joined(rest, value.subarray(from));
  }
}

function joined(a, b) {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

const decoder = new TextDecoder();

/** A line of the stream: `{"session":ID,"offset":N,"event":EVENT}`. */
function takeLine(bytes) {
  const text = decoder.decode(bytes);
  const line = parsed(text);
  if (line.lagged !== undefined) return;
  reduceList(sessions, line, Date.now());
  schedule();
  if (line.session !== page.current || !page.session) return;
  if (line.removed) return void (location.hash = "");
  const event = text.slice(text.indexOf('"event":') + 8, -1);
  const begin = line.offset - utf8.encode(event).length - 1;
  if (line.offset <= page.session.end) return;
  // What is between is not here: it is being read, or it is not an event.
  if (page.reading || begin !== page.session.end) return void catchUp();
  takeEvent(event, line.offset);
}

function takeEvent(text, end) {
  take(page.session, text, end);
  announce();
  schedule();
}

/** Reads what the session has behind what is here, until nothing is missing. */
function catchUp() {
  page.isBehind = true;
  page.reading ??= readOn().finally(() => (page.reading = null));
  return page.reading;
}

async function readOn() {
  while (page.isBehind && page.session) {
    page.isBehind = false;
    const { session, follower } = page;
    try {
      const answer = await read(pathOf(session.id, `/events?offset=${session.end}`));
      for await (const line of linesOf(answer.body)) {
        if (page.session !== session) break;
        take(session, decoder.decode(line), session.end + line.length + 1);
      }
      if (page.session !== session) continue;
      page.spoken = session.items.length;
      schedule();
      // Where a service was killed, its answer ends when somebody asks for it.
      if (session.active && page.looked !== session) ask(`/v1/responses/resp_${session.active}`).catch(() => {});
      page.looked = session;
    } catch (error) {
      // Whatever else it is, the stream alone does not make up for it: both begin again.
      if (error.status !== 404) follower?.abort();
      else if (page.session === session) location.hash = "";
    }
  }
}

async function readList(isMore = false) {
  const answer = await read(`/v1/sessions?limit=50${isMore ? `&after=${page.last}` : ""}`);
  const { data, has_more, last_id } = await answer.json();
  if (!isMore) sessions.clear();
  for (const entry of data.map(listed)) sessions.set(entry.id, entry);
  Object.assign(page, { isListed: true, hasMore: has_more, last: last_id });
  schedule();
}

// ---- Drawing

/** Draws with the next frame, once for all events that come before it. */
function schedule() {
  page.frame ||= requestAnimationFrame(draw);
}

function draw() {
  page.frame = 0;
  const now = Date.now();
  drawList(sessions, items, page.current, now);
  show($("none"), page.isListed && sessions.size === 0);
  show($("more"), page.hasMore);
  const { session } = page;
  const entry = sessions.get(page.current);
  setText($("title"), session ? safe(session.title || entry?.title || "Untitled") : "New session");
  const tokens = session && session.read + session.written > 0 ? `${session.read} in · ${session.written} out` : "";
  const waiting = session?.calls.filter(waits).length ?? 0;
  const state = waiting > 0 ? waitsText(waiting) : session?.active ? "running" : "";
  setText($("about"), session ? [state, safe(session.model), tokens].filter(Boolean).join(" · ") : "");
  $("about").dataset.state = waiting > 0 ? "waits" : session?.active ? "running" : "";
  show($("stop"), session?.active);
  setText($("asks"), session?.active ? "Say something; the model reads it in its next turn" : session ? "Go on" : "Ask");
  document.title = `${waiting > 0 ? "(!) " : ""}${session ? safe(session.title) || "Untitled" : "toolpipe"}`;
  if (!session) return;
  drawSession();
  if (view.name === "raw") drawRaw();
}

/** Says to a screen reader what has come, a few times a minute at most and not word by word. */
function announce() {
  page.saying ||= setTimeout(() => {
    page.saying = 0;
    const { session } = page;
    if (!session) return;
    const words = session.items.slice(page.spoken).map(({ kind, voice, text, call }) => (call ? `${call.name} ${status(call)[1]}` : kind === "note" || voice === "answer" ? text : ""));
    page.spoken = session.items.length;
    setText($("say"), safe(words.filter(Boolean).join(". ").slice(-600)));
  }, 3000);
}

// ---- What a person does

function openCurrent() {
  const id = location.hash.slice(1);
  const isSession = /^[0-9a-f]{32}$/.test(id);
  if (!isSession || id !== page.current) {
    page.current = isSession ? id : "";
    page.session = isSession ? newSession(id) : null;
    page.spoken = 0;
    openView(page.session, { copy: copyAnswer, decide, cancelCall });
    setView("talk");
    setText($("note"), "");
  }
  $("app").dataset.screen = isSession || id === "new" ? "session" : "list";
  show($("welcome"), !page.session);
  show($("tools"), page.session);
  if (page.session && page.follower) catchUp();
  if (id === "new") $("text").focus();
  else if (isSession && !$("list").offsetParent) $("pane").focus();
  schedule();
}

const callPath = (call, verb) => pathOf(page.current, `/calls/${encodeURIComponent(call.id)}/${verb}`);
const cancelCall = (call) => post(callPath(call, "cancel"));

/** Answers a call. While an answer waits for it, a word to the model goes first, so that the model reads it with the result; else it would come
    before the result. */
async function decide(call, verb, word) {
  const isFirst = page.session.active;
  const say = async () => word && post(pathOf(page.current, "/messages"), { content: word });
  if (isFirst) await say();
  await post(callPath(call, verb), { hash: call.hash });
  if (!isFirst) await say();
}

/** Asks, in the session shown or a new one; in the background, so that closing the page does not cancel the answer. */
async function send() {
  const content = $("text").value.trim();
  const { session } = page;
  if (!content || $("text").readOnly) return;
  // Enter twice asks once.
  $("text").readOnly = true;
  try {
    if (session?.active) {
      await post(pathOf(session.id, "/messages"), { content });
      setText($("note"), "The model reads it in its next turn.");
    } else {
      const body = { model: $("model").value.trim() || "any", input: content, background: true };
      if (session) body.conversation = `conv_${session.id}`;
      const answer = await post("/v1/responses", body);
      setText($("note"), "");
      if (!session) location.hash = answer.headers.get("x-session-id");
    }
    $("text").value = "";
    view.isAtEnd = true;
  } finally {
    $("text").readOnly = false;
  }
}

const copyAnswer = (item) => copy(curlOf(page.session, item, location.origin, key !== ""));

async function copy(command) {
  try {
    await navigator.clipboard.writeText(command);
    setText($("note"), "Copied.");
  } catch {
    await confirmed("Copy this command", command, "Done");
  }
}

async function confirmed(title, text, yes) {
  const dialog = $("dialog");
  setText($("dialog-title"), title);
  setText($("dialog-text"), text);
  setText($("dialog-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  return dialog.returnValue === "yes";
}

async function remove() {
  const { session } = page;
  if (!(await confirmed("Delete this session?", safe(session.title) || session.id, "Delete"))) return;
  await ask(pathOf(session.id), { method: "DELETE" });
  sessions.delete(session.id);
  location.hash = "";
}

/** What a control does; where that fails, the reason is shown. */
function on(id, event, work) {
  $(id).addEventListener(event, async (happened) => {
    if (event === "submit") happened.preventDefault();
    try {
      await work(happened);
    } catch (error) {
      setText($("note"), safe(error.message));
    }
  });
}

/** The arrow keys, j and k go through a list of links. */
function walk(event) {
  const links = [...$("list").querySelectorAll("a")];
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  const next = links[links.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function start() {
  on("door", "submit", () => {
    sessionStorage.setItem("key", $("key").value.trim());
    location.reload();
  });
  on("stop", "click", () => post(pathOf(page.current, "/cancel"), { response_id: page.session.active }));
  on("delete", "click", remove);
  on("follow", "click", () => copy(`curl -N ${quoted(`${location.origin}${pathOf(page.current, "/events?live=ndjson")}`)}${keyHeader(key !== "")}`));
  on("more", "click", () => readList(true));
  on("ask", "submit", send);
  on("text", "keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("ask").requestSubmit();
  });
  on("list", "keydown", walk);
  on("earlier", "click", () => step(false));
  on("later", "click", () => step(true));
  on("latest", "click", () => {
    view.isAtEnd = true;
    schedule();
  });
  on("pane", "scroll", () => {
    if (view.name === "talk" && page.session && noteEnd()) schedule();
  });
  on("lines", "scroll", drawRaw);
  on("filter", "input", drawRaw);
  on("lines", "keydown", (event) => {
    const moves = { ArrowDown: view.chosen + 1, ArrowUp: view.chosen - 1, Home: 0, End: Infinity, PageDown: view.chosen + 10, PageUp: view.chosen - 10 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(moves[event.key]);
  });
  for (const button of $("tools").querySelectorAll("[data-view]")) button.onclick = () => setView(button.dataset.view);
  setText($("example"), `curl ${location.origin}/v1/responses${keyHeader(key !== "")} \\\n  -H 'content-type: application/json' \\\n  -d '{"model": "any", "input": "Hello"}'`);
  addEventListener("hashchange", openCurrent);
  // A connection that the network has lost does not end by itself.
  addEventListener("online", () => {
    pause();
    follow();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : follow()));
  // How long calls run, and a timeline that grows: it is drawn whole, so not in each frame.
  setInterval(() => {
    if (document.hidden) return;
    if (page.session?.active) changeCalls(page.session, (call) => call.state === "running", {});
    if (view.name === "time") drawTime(Date.now());
    schedule();
  }, 1000);
  openCurrent();
  follow();
  ask("/v1/models").then((answer) => answer.json()).then(({ data }) => {
    $("models").append(...list(data).map((model) => make("option", { value: string(object(model).id) })));
    $("model").value ||= string(object(list(data)[0]).id);
  }).catch(() => {});
}

start();
