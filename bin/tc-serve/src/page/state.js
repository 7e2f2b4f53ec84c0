// What a session holds, made from its events: texts, notes and calls in order, and when each happened. Nothing here touches the document, the
// network or a clock, so tests run it over recorded logs. `take` changes the session in place and names the changed items in `changed`: a copy for
// each event would cost more than the event. The rules about calls are those of crates/conversation.
"use strict";

/** A session before its first event. */
function newSession(id) {
  return {
    id, end: 0, lines: [], items: [], calls: [], byId: new Map(), changed: new Set(), marks: [], who: "", spoken: new Set(), turns: {}, isPaused: true,
    failed: null, turn: null, response: null, active: null, model: "", title: "", read: 0, written: 0,
  };
}

const string = (value) => (typeof value === "string" ? value : "");
const number = (value) => (typeof value === "number" ? value : null);
const object = (value) => (value !== null && typeof value === "object" ? value : {});
const list = (value) => (Array.isArray(value) ? value : []);
const plain = (value) => (typeof value === "string" ? value : value == null ? "" : JSON.stringify(value));
const utf8 = new TextEncoder();

/** The value of a JSON text; of any other text an empty object. */
function parsed(json) {
  try { return object(JSON.parse(json)); } catch { return {}; }
}

/** The value of a JSON text whose numbers keep their digits: a person approves the digits that the tool gets. */
const exact = (json) => JSON.parse(json, (_, value, { source }) => (typeof value === "number" ? JSON.rawJSON(source) : value));

// The message of the model repeats what these events have brought.
const SPEECH = ["content_delta", "refusal_delta", "thinking", "tool_call_delta", "tool_call"];

/** Takes the line that ends at the byte `end` of the session; a line taken before changes nothing. */
function take(s, line, end) {
  if (end <= s.end) return;
  s.end = end;
  let event = parsed(line);
  s.lines.push({ text: line, type: string(event.type) || "not an event" });
  // A line of a log may be a message alone.
  if (event.type === undefined && typeof event.role === "string") event = { type: "message", message: event };
  const stream = event.stream === undefined ? "" : JSON.stringify(event.stream);
  const e = {
    event, line, stream, who: `${stream}\n${number(event.choice) ?? 0}`, id: string(event.tool_id), name: string(event.tool_name), index: number(event.index),
    text: string(event.text), status: string(event.status), t: number(event.t), at: number(event.timestamp),
  };
  if (SPEECH.includes(event.type)) s.spoken.add(e.who);
  if (s.turn && e.t > s.turn.last) s.turn.last = e.t;
  if (Object.hasOwn(RULES, event.type)) RULES[event.type](s, e);
}

// ---- Texts and notes

function add(s, item) {
  item.key = s.items.length;
  s.items.push(item);
  s.changed.add(item.key);
  return item;
}

const turnOf = (s, e) => s.turns[e.stream] ?? 0;

/** The next item is of this stream and choice; a heading names them where there are several. */
function turnTo(s, { who, event }) {
  if (s.who === who) return;
  const isOnly = s.who === "" && who === "\n0";
  s.who = who;
  if (isOnly) return;
  s.isPaused = true;
  const name = plain(event.stream) || "the unnamed stream";
  add(s, { kind: "note", tone: "heading", text: event.choice ? `${name}, choice ${event.choice}` : name });
}

function speak(s, e, voice, text) {
  if (!text) return;
  turnTo(s, e);
  const last = s.items.at(-1);
  if (!s.isPaused && last?.voice === voice) {
    last.text += text;
    s.changed.add(last.key);
  } else {
    add(s, { kind: "text", voice, text, who: e.who, turn: turnOf(s, e) });
  }
  s.isPaused = false;
}

function note(s, e, tone, text) {
  if (e.stream) turnTo(s, e);
  add(s, { kind: "note", tone, text });
}

function notice(s, e, tone) {
  const [source, message, code] = [e.event.source, e.event.message, e.event.code].map(string);
  note(s, e, tone, (source && `${source}: `) + message + (code && ` (${code})`));
}

/** The text of a message: a string, or the text parts of a list. Another part is shown by its type: no image is loaded. */
function contentOf({ content }) {
  if (!Array.isArray(content)) return plain(content);
  return content.map((part) => plain(object(part).text) || `[${plain(object(part).type)}]`).join("");
}

const titleOf = (message) => contentOf(message).trim().split("\n")[0].slice(0, 200);

// ---- Calls

function newCall(s, e, id, name) {
  const call = {
    who: e.who, turn: turnOf(s, e), id, name, index: null, arguments: "", brief: "", bytes: 0, state: "arriving", code: "", summary: "", progress: null, result: null,
    isCancelled: false, retracted: "", hasRun: false, fromText: false, repairs: 0, hash: "", why: "", decision: "", output: "", since: null,
  };
  s.calls.push(call);
  if (id) s.byId.set(id, call);
  turnTo(s, e);
  call.key = add(s, { kind: "call", call }).key;
  return call;
}

const find = (s, e, is) => s.calls.findLast((call) => call.who === e.who && is(call));

/** The call of the event, even after its turn, since a tool may take longer than the turn. */
function known(s, e) {
  const call = e.id ? s.byId.get(e.id) : undefined;
  return !call || call.who === e.who ? call : find(s, e, (call) => call.id === e.id);
}

/** Whether the call is of the turn that goes on: some servers number the calls of each turn anew. */
const isOpen = (s, e) => (call) => call?.turn === turnOf(s, e) && call.who.startsWith(`${e.stream}\n`);

/** The call that the model asks for: the one of this id in this turn, or a new one. */
function requested(s, e) {
  const call = known(s, e);
  return change(s, isOpen(s, e)(call) ? call : newCall(s, e, e.id, ""));
}

/** The call of an event of its run. */
const ran = (s, e) => change(s, known(s, e) ?? newCall(s, e, e.id, e.name));

function change(s, call, values) {
  s.changed.add(call.key);
  return Object.assign(call, values);
}

function changeCalls(s, is, values) {
  for (const call of s.calls.filter(is)) change(s, call, values);
}

const setArguments = (call, text) => Object.assign(call, { arguments: text, bytes: utf8.encode(text).length, brief: brief(text) });

function delta(s, e) {
  let call = e.id ? requested(s, e) : find(s, e, (call) => isOpen(s, e)(call) && call.state === "arriving" && call.index === e.index);
  if (!call && typeof e.event.tool_name === "string") call = newCall(s, e, "", "");
  // A delta may follow the whole call, or have nothing of any call.
  if (call?.state !== "arriving") return;
  const piece = plain(e.event.arguments);
  const text = call.arguments + piece;
  change(s, call, { index: e.index, name: call.name || e.name, arguments: text, bytes: call.bytes + utf8.encode(piece).length });
  call.fromText ||= e.event.from_text === true;
  if (call.brief.length < BRIEF) call.brief = oneLine(text, BRIEF);
}

function toolCall(s, e) {
  const { arguments: whole, arguments_text, error, repairs } = e.event;
  const call = Object.assign(requested(s, e), { name: e.name, index: e.index, repairs: list(repairs).length, state: error ? "refused" : "called" });
  setArguments(call, plain(whole) ? plain(exact(e.line).arguments) : string(arguments_text));
  if (error) Object.assign(call, { code: string(error.code), summary: string(error.message) });
}

function used(s, e) {
  const call = Object.assign(ran(s, e), { state: "running", since: e.at, hasRun: true });
  if (!call.arguments) setArguments(call, string(e.event.input_summary));
  mark(s, e, "use", call);
}

function progressed(s, e) {
  const call = ran(s, e);
  call.summary = e.text.split("\n").findLast((line) => line.trim()) ?? call.summary;
  call.progress = number(e.event.progress) ?? call.progress;
  call.output += e.text;
}

function ended(s, e) {
  const { output, output_bytes, duration_ms, exit_code, cached, truncated, hash, return_directly } = e.event;
  const result = {
    status: e.status, output: string(output), ms: number(duration_ms), exit: number(exit_code), isCached: cached === true,
    cutFrom: truncated === true ? number(output_bytes) : null,
  };
  const call = Object.assign(ran(s, e), { state: "ended", result, hash: string(hash), decision: "" });
  // The rest of the sentence is for a person at a terminal.
  call.why = result.output.split(/ It (?:needs|waits) /)[0];
  mark(s, e, e.status === "pending" ? "wait" : "result", call);
  if (return_directly === true) speak(s, e, "output", result.output);
}

function retract(s, e) {
  const call = e.id ? known(s, e) : find(s, e, (call) => e.index !== null && call.index === e.index);
  if (call) change(s, call, { retracted: string(e.reason) || "unknown" });
}

/** A `tool` message is the result of a call that has no `tool_result` in the log. */
function answered(s, e, message) {
  const id = string(message.tool_call_id);
  if (!id) return;
  const call = find(s, e, (call) => call.id === id) ?? newCall(s, e, id, plain(message.name));
  if (call.result || call.retracted) return;
  change(s, call, { state: "ended", result: { status: "answered", output: contentOf(message) } });
}

// ---- Messages, turns and responses

function message(s, e) {
  const message = object(e.event.message);
  const { role } = message;
  if (role === "tool") return answered(s, e, message);
  if (role === "assistant" || role === "user") s.isPaused = true;
  if (role === "user") {
    speak(s, e, "user", contentOf(message));
    s.title ||= titleOf(message);
    s.isPaused = true;
  }
  if (role !== "assistant" || s.spoken.delete(e.who)) return;
  // A turn that has no other events.
  s.turns[e.stream] = turnOf(s, e) + 1;
  speak(s, e, "thinking", plain(message.reasoning));
  speak(s, e, "answer", contentOf(message));
  speak(s, e, "refusal", plain(message.refusal));
  for (const { id, function: tool } of list(message.tool_calls).map(object)) {
    const call = newCall(s, e, string(id), plain(object(tool).name));
    setArguments(call, plain(object(tool).arguments)).state = "called";
  }
}

/** A text that follows is a text of its own. */
function endSpeech(s, e) {
  for (const who of s.spoken) if (who.startsWith(`${e.stream}\n`)) s.spoken.delete(who);
  s.isPaused = true;
}

/** No more arguments come: a call that no stage has merged is whole or incomplete. */
function endArguments(s, e) {
  for (const call of s.calls.filter((call) => call.state === "arriving" && isOpen(s, e)(call))) {
    let state = "incomplete";
    try { if (JSON.parse(call.arguments || "{}") && /^({|$)/.test(call.arguments.trim())) state = "called"; } catch {}
    change(s, call, { state });
  }
}

function streamStart(s, e) {
  endSpeech(s, e);
  endArguments(s, e);
  s.turns[e.stream] = turnOf(s, e) + 1;
  s.model = string(e.event.model) || s.model;
  s.turn = { model: s.model, last: e.t ?? 0, first: 0, reason: "", tokens: null };
  mark(s, e, "turn");
  if (s.response) s.response.until ??= s.lines.length;
}

const REASONS = {
  length: "the answer was cut at the token limit", content_filter: "the provider's content filter stopped the answer",
  cancelled: "cancelled", cut: "the connection ended before the answer did",
};

function streamEnd(s, e) {
  const reason = string(e.event.finish_reason);
  if (reason === "cancelled") changeCalls(s, (call) => isOpen(s, e)(call) && !call.result, { isCancelled: true });
  endSpeech(s, e);
  endArguments(s, e);
  if (s.turn) s.turn.reason = reason;
  endTurn(s, e);
  // An error has said why.
  const isReported = reason === "cut" && s.failed === e.stream;
  if (s.failed === e.stream) s.failed = null;
  if (Object.hasOwn(REASONS, reason) && !isReported) note(s, e, "warning", REASONS[reason]);
}

function endTurn(s, e) {
  if (s.turn) mark(s, e, "end");
  s.turn = null;
}

function stats(s, e) {
  const { prompt_tokens, completion_tokens, first_event_ms } = e.event;
  s.read += number(prompt_tokens) ?? 0;
  s.written += number(completion_tokens) ?? 0;
  if (s.turn) Object.assign(s.turn, { first: number(first_event_ms) ?? s.turn.first, tokens: number(completion_tokens) });
}

function response(s, e) {
  const [id, front, model] = [e.event.id, e.event.front, e.event.model].map(string);
  s.isPaused = true;
  s.active = id;
  s.response = add(s, { kind: "response", id, front, model, at: e.at, line: s.lines.length - 1, status: "" });
  s.model ||= model;
  mark(s, e, "response", s.response);
}

function responseEnd(s, e) {
  const item = s.items.findLast((item) => item.kind === "response" && item.id === e.event.id);
  if (item) change(s, item, { status: e.status });
  if (s.active === e.event.id) s.active = null;
  if (e.status === "deleted") return;
  // No event of the answer follows: a call that runs has no result.
  changeCalls(s, (call) => call.state === "running", { state: "lost" });
  changeCalls(s, (call) => call.state === "arriving", { state: "incomplete" });
  endTurn(s, e);
  if (e.status !== "completed") note(s, e, ["failed", "interrupted"].includes(e.status) ? "error" : "warning", `the answer is ${e.status}`);
}

function approval(s, e) {
  const [decision, by, reason] = [string(e.event.decision), string(e.event.by) || string(e.event.source), string(e.event.reason)];
  const call = known(s, e);
  if (call) change(s, call, { decision });
  note(s, e, "quiet", `${e.name}: ${decision}${by && ` by ${by}`}${reason && `: ${reason}`}`);
}

/** Notes when something happened, for the timeline. */
function mark(s, e, kind, what = null) {
  s.marks.push({ kind, what, turn: s.turn, t: e.t, at: e.at });
}

const RULES = {
  tool_call_delta: delta, tool_call: toolCall, tool_use: used, tool_progress: progressed, tool_result: ended, retract,
  message, stream_start: streamStart, stream_end: streamEnd, session_stats: stats, response, response_end: responseEnd, approval,
  thinking: (s, e) => speak(s, e, "thinking", e.text),
  content_delta: (s, e) => speak(s, e, "answer", e.text),
  refusal_delta: (s, e) => speak(s, e, "refusal", e.text),
  warning: (s, e) => notice(s, e, "warning"),
  error: (s, e) => {
    s.failed = e.stream;
    notice(s, e, "error");
  },
  cancel: (s, e) => note(s, e, "quiet", `${e.id ? `the call ${e.id}` : "the answer"} was cancelled by ${string(e.event.by)}`),
  server_item: (s, e) => note(s, e, "quiet", `${string(e.event.kind)} (run by the provider)`),
  session: (s, e) => {
    const { id } = object(e.event.fork);
    if (id) note(s, e, "quiet", `continues session ${string(id)}`);
  },
};

// ---- Words for people

// The mark of a card, and the word where it is another one, as in crates/view/src/card.rs. Any other result has failed.
const RESULTS = {
  success: ["done", "done"], answered: ["done", "done"], pending: ["waits", "waits for approval"], denied: ["refused"], invalid: ["refused"], unknown_tool: ["refused"],
};

/** The mark and the word of a call's state. */
function status(call) {
  const { state, result } = call;
  if (result ? result.status === "cancelled" : call.isCancelled) return ["cancelled", call.hasRun ? "cancelled" : "cancelled, not run"];
  if (state === "ended") {
    const [mark, word] = Object.hasOwn(RESULTS, result.status) ? RESULTS[result.status] : ["failed"];
    return [mark, (mark === "waits" && call.decision) || (word ?? result.status.replaceAll("_", " "))];
  }
  if (call.retracted) return ["retracted", "taken back"];
  if (state === "lost") return ["lost", "no result"];
  if (state === "incomplete") return ["lost", "incomplete"];
  return [state, state === "refused" ? `refused: ${call.code}` : state];
}

/** What else is known of a call, in short; at the time of day `now`, if it may still run. */
function figures({ state, bytes, progress, summary, fromText, repairs, result, since, retracted }, now) {
  return [
    state === "arriving" && bytesText(bytes),
    state === "running" && progress !== null && `${Math.round(Math.min(1, Math.max(0, progress)) * 100)} %${summary && ` · ${summary}`}`,
    state === "running" && now && since && now - since > 2000 && duration(now - since),
    fromText && "from text",
    repairs > 0 && "repaired",
    // The end of a turn does not undo a call that has run.
    result && retracted && retracted !== "stream_failed" && "taken back",
    result?.exit && `exit ${result.exit}`,
    result?.isCached && "cached",
    typeof result?.ms === "number" && duration(result.ms),
  ].filter(Boolean).join(", ");
}

/** Whether a person can answer the call now. */
const waits = (call) => call.state === "ended" && call.result.status === "pending" && !call.decision;

/** Milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `2 min 3 s`. */
function duration(ms) {
  if (ms < 999.5) return `${ms.toFixed(ms < 9.95 ? 1 : 0)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.floor((ms / 1000) % 60)} s`;
}

function bytesText(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// The characters of crates/event/src/hidden.rs: they show nothing of their own and may reorder what is around them.
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe03-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** `text` with every hidden character written out. */
function safe(text) {
  return text.replace(HIDDEN, (sign) => {
    const hex = sign.codePointAt(0).toString(16);
    return hex.length <= 2 ? `\\x${hex.padStart(2, "0")}` : hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\u{${hex}}`;
  });
}

const oneLine = (text, most) => safe(text.slice(0, most * 4).replace(/\s+/g, " ").trim()).slice(0, most);

/** JSON on many lines. Any other text stays as it is. */
function pretty(json) {
  try { return JSON.stringify(exact(json), null, 2); } catch { return json; }
}

// The most characters of arguments in short.
const BRIEF = 120;

/** Arguments in short: `city: Oslo, days: 3`. */
function brief(json) {
  let text = json;
  if (json.startsWith("{")) {
    // What is not JSON stays as it came.
    try { text = Object.entries(exact(json)).map(([key, value]) => `${key}: ${plain(value)}`).join(", "); } catch {}
  }
  return oneLine(text, BRIEF);
}

// ---- The timeline

/** A section for each answer, with a row for each turn and call, in milliseconds since the answer began. Places come from `t`, durations and time
    stamps, since a recording that is played again has its old `t` and new stamps. `now` is the time of day, for what goes on. */
function timeline(s, now) {
  const sections = [];
  const rows = new Map();
  let section, cursor, anchor, turns;
  const placeOf = (stamp) => (stamp !== null && anchor ? Math.max(0, anchor.place + stamp - anchor.stamp) : cursor);
  const row = (key, label, start, call = null) => {
    const made = { key, label, start, call, wait: 0, length: 0, isOpen: true, waitsNow: false, section };
    rows.set(key, made);
    section.rows.push(made);
    return made;
  };
  for (const { kind, what, turn, t, at } of s.marks) {
    if (kind === "response" || !section) {
      section = { response: kind === "response" ? what : null, rows: [], total: 0 };
      sections.push(section);
      [cursor, anchor, turns] = [0, null, 0];
    }
    const ofTurn = rows.get(turn);
    let place = ofTurn && t !== null ? ofTurn.start + turn.first + t : placeOf(at);
    if (kind === "turn") row(turn, `turn ${(turns += 1)}`, (place = cursor));
    if (kind === "end" && ofTurn) {
      ofTurn.length = turn.last;
      ofTurn.isOpen = false;
      place = ofTurn.start + turn.first + turn.last;
    }
    if (kind === "wait" || kind === "use" || kind === "result") {
      let found = rows.get(what);
      if (found?.section !== section) found = row(what, what.name, place, what);
      if (found.waitsNow) found.wait = place - found.start;
      else if (kind === "result") found.length = what.result.ms ?? Math.max(0, place - found.start - found.wait);
      if (kind === "result") place = found.start + found.wait + found.length;
      found.waitsNow = kind === "wait";
      found.isOpen = kind !== "result";
    }
    if (at !== null) anchor = { stamp: at, place };
    cursor = Math.max(cursor, place);
    section.total = Math.max(section.total, place);
  }
  for (const found of section?.rows.filter((found) => found.isOpen) ?? []) {
    const end = s.active ? Math.max(cursor, placeOf(now)) : cursor;
    if (found.waitsNow) found.wait = end - found.start;
    else found.length = Math.max(found.call ? 0 : found.key.last, end - found.start - found.wait);
    section.total = Math.max(section.total, found.start + found.wait + found.length);
  }
  return sections;
}

// ---- Commands to copy

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const keyHeader = (hasKey) => (hasKey ? ' -H "authorization: Bearer $KEY"' : "");

// The fronts whose requests a session keeps whole.
const PATHS = { "openai-responses": "/v1/responses", "openai-chat": "/v1/chat/completions" };

/** A command that asks what the response `item` was asked. The key stays the variable KEY. */
function curlOf(s, item, origin, hasKey) {
  const lines = s.lines.slice(0, item.until);
  const request = lines.findLast(({ type }, place) => type === "request" && place > item.line);
  const { tools, tool_choice, params } = exact(request?.text ?? "{}");
  // A message with `once` holds for its own response alone.
  const isAsked = ({ type, text }, place) => type === "message" && (place > item.line || parsed(text).once !== true);
  const messages = lines.filter(isAsked).map(({ text }) => object(exact(text).message));
  const talk = item.front === "openai-chat" ? { messages: messages.map(({ reasoning, provider, ...rest }) => rest) } : { input: messages.flatMap(responseItems) };
  const body = JSON.stringify({ model: item.model, ...talk, tools, tool_choice, ...params });
  return `curl ${quoted(origin + PATHS[item.front])}${keyHeader(hasKey)} -H 'content-type: application/json' -d ${quoted(body)}`;
}

/** A message as the items of Responses. */
function responseItems(message) {
  const { role } = message;
  const content = contentOf(message);
  if (role === "tool") return [{ type: "function_call_output", call_id: message.tool_call_id, output: content }];
  const calls = list(message.tool_calls).map(object).map(({ id, function: tool }) => ({ type: "function_call", call_id: id, ...tool }));
  return content ? [{ role, content }, ...calls] : calls;
}

// ---- The list of sessions

/** Takes a line of the stream of all sessions; `sessions` has an entry for each id. */
function reduceList(sessions, line, now) {
  const id = string(line.session);
  if (line.removed) return void sessions.delete(id);
  const event = object(line.event);
  const { type } = event;
  const entry = sessions.get(id) ?? { id, created: now, title: "", active: null, pending: new Set() };
  sessions.set(id, entry);
  Object.assign(entry, { modified: now, isLeft: false });
  if (type === "session") entry.created = number(event.created) ?? entry.created;
  if (type === "response") entry.active = string(event.id);
  if (type === "response_end" && entry.active === event.id) entry.active = null;
  if (type === "tool_result" && event.status === "pending") entry.pending.add(event.tool_id);
  else if (["tool_result", "tool_use", "approval"].includes(type)) entry.pending.delete(event.tool_id);
  if (type === "message" && object(event.message).role === "user" && !event.once) entry.title ||= titleOf(event.message);
}

/** The entry of a session of `GET /v1/sessions`. A service that was killed has left the answer of one with `isLeft`. */
function listed({ id, created, modified, title, active_response_id: active, interrupted_response_id: left, pending }) {
  return { id, created, modified, title: string(title), active: active ?? left, isLeft: !active, pending: new Set(pending.map((call) => call.tool_id)) };
}
