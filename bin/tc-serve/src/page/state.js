// What a session holds, made of its events: texts, notes and calls in order, and what happened when. Nothing here touches the document, the network
// or a clock, so tests run it over recorded logs. `reduce` changes the session that it is given (`s`), and names what has changed in `changed`: a
// copy for each event would cost more than the event. The rules about calls are those of crates/view/src/calls.rs.
"use strict";

/** A session before its first event. */
function newSession(id) {
  return {
    id, end: 0, lines: [], items: [], calls: [], byId: new Map(), changed: new Set(), marks: [], who: "", turns: new Set(), turnOf: {}, withoutId: 0,
    paused: true, failed: null, turn: null, response: null, active: null, model: "", title: "", read: 0, written: 0,
  };
}

const string = (value) => (typeof value === "string" ? value : "");
const number = (value) => (typeof value === "number" ? value : null);
const object = (value) => (value !== null && typeof value === "object" ? value : {});
const list = (value) => (Array.isArray(value) ? value : []);
const plain = (value) => (typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value));
const utf8 = new TextEncoder();

/** A JSON text as its value; what is not JSON is an empty object. */
function parsed(json) {
  try { return object(JSON.parse(json)); } catch { return {}; }
}

/** Takes the line that ends at the byte `end` of the session. One that was taken before changes nothing. */
function take(s, line, end) {
  if (end <= s.end) return;
  s.end = end;
  const event = parsed(line);
  s.lines.push({ text: line, type: string(event.type) || "not an event" });
  reduce(s, event, line);
}

// After these events the message of the model repeats what is there.
const BEGIN = ["content_delta", "refusal_delta", "thinking", "tool_call_delta", "tool_call_partial", "tool_call"];

/** Takes an event. In its `line` numbers keep their digits. */
function reduce(s, event, line = JSON.stringify(event)) {
  // A line of a log may be a message alone.
  if (event.type === undefined && typeof event.role === "string") event = { type: "message", message: event };
  const stream = event.stream === undefined ? "" : JSON.stringify(event.stream);
  const e = {
    event, line, stream, who: `${stream}\n${number(event.choice) ?? 0}`, id: string(event.tool_id), name: string(event.tool_name), index: number(event.index),
    text: string(event.text), status: string(event.status), t: number(event.t), at: number(event.timestamp),
  };
  if (BEGIN.includes(event.type)) s.turns.add(e.who);
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

/** What follows is of this stream and choice; a heading says so where there are several. */
function turnTo(s, who) {
  if (s.who === who) return;
  const isOne = s.who === "" && who === "\n0";
  s.who = who;
  if (isOne) return;
  s.paused = true;
  const [stream, choice] = who.split("\n");
  const name = stream ? plain(JSON.parse(stream)) : "the unnamed stream";
  add(s, { kind: "note", tone: "heading", text: choice === "0" ? name : `${name}, choice ${choice}` });
}

function speak(s, e, voice, text) {
  if (!text) return;
  turnTo(s, e.who);
  const last = s.items.at(-1);
  if (!s.paused && last?.voice === voice) {
    last.text += text;
    s.changed.add(last.key);
  } else {
    add(s, { kind: "text", voice, text, who: e.who, turn: s.turnOf[e.who] ?? 0 });
  }
  s.paused = false;
}

function note(s, e, tone, text) {
  if (e.stream) turnTo(s, e.who);
  add(s, { kind: "note", tone, text });
}

function notice(s, e, tone) {
  const [source, message, code] = [e.event.source, e.event.message, e.event.code].map(string);
  note(s, e, tone, (source && `${source}: `) + message + (code && ` (${code})`));
}

/** The text of a message: a string, or the text parts of a list. Other parts are shown by their type, so an image is never loaded. */
function contentOf({ content }) {
  if (!Array.isArray(content)) return plain(content);
  return content.map((part) => plain(object(part).text) || `[${plain(object(part).type)}]`).join("");
}

const titleOf = (message) => contentOf(message).trim().split("\n")[0].slice(0, 200);

// ---- Calls

function newCall(s, e, id, name) {
  const call = {
    who: e.who, id: "", name, index: null, arguments: "", bytes: 0, state: "arriving", code: "", summary: "", progress: null, result: null, isClosed: false,
    isCancelled: false, cameWhole: false, wasStarted: false, fromText: false, repairs: 0, hash: "", why: "", decision: "", output: "", since: null,
  };
  s.calls.push(call);
  s.withoutId += 1;
  identify(s, call, id);
  turnTo(s, e.who);
  call.key = add(s, { kind: "call", call }).key;
  return call;
}

function identify(s, call, id) {
  if (call.id || !id) return;
  call.id = id;
  s.withoutId -= 1;
  s.byId.set(id, call);
}

const isArriving = (call) => !call.isClosed && call.state === "arriving";
const find = (s, e, is) => s.calls.findLast((call) => call.who === e.who && is(call));

/** The call of this id, even after its turn, since tools may take longer than that. */
function known(s, e, id = e.id) {
  const call = id ? s.byId.get(id) : undefined;
  return !call || call.who === e.who ? call : find(s, e, (call) => call.id === id);
}

/** The call of the event in the current turn: some servers number the calls of each turn anew. */
function open(s, e) {
  const call = known(s, e);
  return call?.isClosed ? undefined : call;
}

/** The call that an event of its run names. */
function ran(s, e) {
  const call = known(s, e) ?? newCall(s, e, e.id, e.name);
  s.changed.add(call.key);
  return call;
}

function setArguments(call, text) {
  call.arguments = text;
  call.bytes = utf8.encode(text).length;
}

function delta(s, e) {
  let call = e.id ? open(s, e) : find(s, e, (call) => isArriving(call) && call.index === e.index);
  if (!call && !e.id && e.name) {
    // Where deltas are kept, the delta that completed a call follows it.
    const whole = find(s, e, (call) => call.cameWhole && !call.isClosed && call.name === e.name);
    if (whole) whole.cameWhole = false;
    if (whole) return;
  }
  if (call ? !isArriving(call) : !e.id && typeof e.event.tool_name !== "string") return;
  call ??= newCall(s, e, e.id, "");
  call.index = e.index;
  call.name ||= e.name;
  call.fromText ||= e.event.from_text === true;
  const piece = plain(e.event.arguments);
  call.arguments += piece;
  call.bytes += utf8.encode(piece).length;
  s.changed.add(call.key);
}

function partial(s, e) {
  const call = open(s, e) ?? newCall(s, e, e.id, e.name);
  if (isArriving(call)) setArguments(call, jsonText(e.line, "arguments"));
  s.changed.add(call.key);
}

function toolCall(s, e) {
  let call = open(s, e);
  // A call without an id gets one when its deltas are merged: the first of that name without an id.
  if (!call && s.withoutId > 0) call = s.calls.find((call) => isArriving(call) && call.who === e.who && !call.id && call.name === e.name);
  const isFirst = !call;
  call ??= newCall(s, e, "", "");
  identify(s, call, e.id);
  call.cameWhole ||= isFirst;
  [call.name, call.index, call.repairs] = [e.name, e.index, list(e.event.repairs).length];
  setArguments(call, (e.event.arguments ?? null) === null ? string(e.event.arguments_text) : jsonText(e.line, "arguments"));
  s.changed.add(call.key);
  if (call.state !== "arriving" && call.state !== "called") return;
  const { error } = e.event;
  call.state = error ? "refused" : "called";
  if (error) [call.code, call.summary] = [string(error.code), string(error.message)];
}

function used(s, e) {
  const call = ran(s, e);
  [call.state, call.since, call.wasStarted] = ["running", e.at, true];
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
  const call = ran(s, e);
  const { output, output_summary, output_bytes, duration_ms, exit_code, cached, truncated, hash, return_directly } = e.event;
  call.result = {
    status: e.status, output: string(output), ms: number(duration_ms), exit: number(exit_code), isCached: cached === true,
    cutFrom: truncated === true ? number(output_bytes) : null, isRetracted: call.state === "retracted",
  };
  [call.state, call.summary, call.hash, call.decision] = ["ended", string(output_summary), string(hash), ""];
  // What follows is for a person at a terminal.
  if (e.status === "pending") call.why = string(output).split(" It waits for a person")[0];
  mark(s, e, e.status === "pending" ? "wait" : "result", call);
  if (return_directly === true) speak(s, e, "output", call.result.output);
}

function retract(s, e) {
  const call = e.id ? known(s, e) : e.index === null ? undefined : find(s, e, (call) => call.index === e.index);
  if (!call || call.state === "retracted" || call.result?.isRetracted) return;
  s.changed.add(call.key);
  if (!call.result) {
    call.state = "retracted";
    return;
  }
  // It ran before it was retracted: its card keeps the result.
  call.result.isRetracted = true;
  note(s, e, "warning", `${call.name} was taken back (${string(e.event.reason)})`);
}

/** The calls of an assistant message whose turn has no other events. */
function asked(s, e, message) {
  for (const { id, function: tool } of list(message.tool_calls).map(object)) {
    const call = newCall(s, e, string(id), plain(object(tool).name));
    call.state = "called";
    setArguments(call, plain(object(tool).arguments));
  }
}

/** A `tool` message is the result of a call without a `tool_result` in the log. */
function answered(s, e, message) {
  const id = string(message.tool_call_id);
  if (!id) return;
  const call = find(s, e, (call) => call.id === id) ?? newCall(s, e, id, plain(message.name));
  if (call.state === "ended" || call.state === "retracted") return;
  call.state = "ended";
  call.result = { status: "answered", output: contentOf(message), ms: null, exit: null, cutFrom: null };
  s.changed.add(call.key);
}

/** Changes each call for which `is` holds. */
function changeCalls(s, is, change) {
  for (const call of s.calls.filter(is)) {
    Object.assign(call, change);
    s.changed.add(call.key);
  }
}

const isOf = (e) => (call) => !call.isClosed && call.who.startsWith(`${e.stream}\n`);

// ---- Messages, turns and responses

function message(s, e) {
  const message = object(e.event.message);
  if (message.role === "user") {
    s.paused = true;
    speak(s, e, "user", contentOf(message));
    s.title ||= titleOf(message);
    s.paused = true;
  } else if (message.role === "assistant" && s.turns.delete(e.who)) {
    s.paused = true;
  } else if (message.role === "assistant") {
    newTurn(s, e);
    speak(s, e, "thinking", plain(message.reasoning));
    speak(s, e, "answer", contentOf(message));
    speak(s, e, "refusal", plain(message.refusal));
    asked(s, e, message);
  } else if (message.role === "tool") {
    answered(s, e, message);
  }
}

const newTurn = (s, e) => (s.turnOf[e.who] = (s.turnOf[e.who] ?? 0) + 1);

function endTurn(s, e) {
  for (const who of s.turns) if (who.startsWith(`${e.stream}\n`)) s.turns.delete(who);
  s.paused = true;
}

function streamStart(s, e) {
  endTurn(s, e);
  newTurn(s, e);
  changeCalls(s, isOf(e), { isClosed: true });
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
  if (reason === "cancelled") changeCalls(s, (call) => isOf(e)(call) && !call.result, { isCancelled: true });
  endTurn(s, e);
  if (s.turn) s.turn.reason = reason;
  mark(s, e, "end");
  s.turn = null;
  const isReported = s.failed === e.stream;
  if (isReported) s.failed = null;
  if (Object.hasOwn(REASONS, reason) && !(reason === "cut" && isReported)) note(s, e, "warning", REASONS[reason]);
}

function stats(s, e) {
  s.read += number(e.event.prompt_tokens) ?? 0;
  s.written += number(e.event.completion_tokens) ?? 0;
  if (!s.turn) return;
  s.turn.first = number(e.event.first_event_ms) ?? s.turn.first;
  s.turn.tokens = number(e.event.completion_tokens);
}

function response(s, e) {
  const [id, front, model] = [e.event.id, e.event.front, e.event.model].map(string);
  s.paused = true;
  s.active = id;
  s.response = add(s, { kind: "response", id, front, model, at: e.at, line: s.lines.length - 1, status: "" });
  s.model ||= model;
  mark(s, e, "response", s.response);
}

function responseEnd(s, e) {
  const item = s.items.findLast((item) => item.kind === "response" && item.id === e.event.id);
  if (item) {
    item.status = e.status;
    s.changed.add(item.key);
  }
  if (s.active === e.event.id) s.active = null;
  if (e.status === "deleted") return;
  // No event of it can come any more: a call that runs has no result.
  changeCalls(s, (call) => call.state === "running", { state: "lost" });
  if (s.turn) mark(s, e, "end");
  s.turn = null;
  if (e.status !== "completed") note(s, e, ["failed", "interrupted"].includes(e.status) ? "error" : "warning", `the answer is ${e.status}`);
}

function approval(s, e) {
  const [decision, by] = [string(e.event.decision), string(e.event.by) || string(e.event.source)];
  const call = known(s, e);
  if (call) {
    call.decision = decision;
    s.changed.add(call.key);
  }
  note(s, e, "quiet", `${e.name}: ${decision}${by && ` by ${by}`}`);
}

function cancel(s, e) {
  note(s, e, "quiet", `${e.id ? `the call ${e.id}` : "the answer"} was cancelled by ${string(e.event.by)}`);
}

/** Notes when something happened, for the timeline. */
function mark(s, e, kind, what = null) {
  s.marks.push({ kind, what, turn: s.turn, t: e.t, at: e.at });
}

const RULES = {
  tool_call_delta: delta, tool_call_partial: partial, tool_call: toolCall, tool_use: used, tool_progress: progressed, tool_result: ended, retract,
  message, stream_start: streamStart, stream_end: streamEnd, session_stats: stats, response, response_end: responseEnd, approval, cancel,
  thinking: (s, e) => speak(s, e, "thinking", e.text),
  content_delta: (s, e) => speak(s, e, "answer", e.text),
  refusal_delta: (s, e) => speak(s, e, "refusal", e.text),
  warning: (s, e) => notice(s, e, "warning"),
  error: (s, e) => {
    s.failed = e.stream;
    notice(s, e, "error");
  },
  server_item: (s, e) => note(s, e, "quiet", `${string(e.event.kind)} (run by the provider)`),
  session: (s, e) => {
    const { id } = object(e.event.fork);
    if (id) note(s, e, "quiet", `continues session ${string(id)}`);
  },
};

// ---- Words for people

/** The state of a card, and the word for it: those of `CallCard::status` in crates/view/src/calls.rs. */
function status(call) {
  const { state, result } = call;
  if (state === "ended" ? result.status === "cancelled" : call.isCancelled) return ["cancelled", call.wasStarted ? "cancelled" : "cancelled, not run"];
  if (state === "refused") return ["refused", `refused: ${call.code}`];
  if (state === "lost") return ["lost", "no result"];
  if (state === "retracted") return ["retracted", "taken back"];
  if (state !== "ended") return [state, state];
  if (result.status === "success" || result.status === "answered") return ["done", "done"];
  if (result.status === "pending") return ["waits", call.decision || "waits for approval"];
  return [["denied", "invalid", "unknown_tool"].includes(result.status) ? "refused" : "failed", result.status.replaceAll("_", " ")];
}

/** What else is known of a call, in short; at the time of day `now`, if it may still run. */
function figures({ state, bytes, progress, summary, fromText, repairs, result, since }, now) {
  return [
    state === "arriving" && bytesText(bytes),
    state === "running" && progress !== null && `${Math.round(Math.min(1, Math.max(0, progress)) * 100)} %${summary && ` · ${summary}`}`,
    state === "running" && now && since && now - since > 2000 && duration(now - since),
    fromText && "from text",
    repairs > 0 && "repaired",
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

// ---- JSON without a tree, so that a person approves the digits that the tool gets

const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** The members of an object, or the items of a list, as [key, text of the value]. The text may be cut. */
function members(json) {
  const all = [];
  let [depth, key, begin, end] = [0, "", -1, 0];
  const close = () => {
    if (begin >= 0) all.push([key, json.slice(begin, end)]);
    [key, begin] = ["", -1];
  };
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    const isEnd = token === "}" || token === "]";
    if (depth === 1 && token === ":" && !key) [key, begin] = [unquoted(json.slice(begin, end)), -1];
    else if (depth === 1 && (token === "," || isEnd)) close();
    else if (depth === 1 && begin < 0) begin = index;
    depth += token === "{" || token === "[" ? 1 : isEnd ? -1 : 0;
    end = index + token.length;
    if (depth === 0) return all;
  }
  close();
  return all;
}

function unquoted(token) {
  try { return plain(JSON.parse(token)); } catch { return token; }
}

/** The text of a member of an object; of a repeated key the last counts. A string is its text. */
function jsonText(line, name) {
  const value = members(line).findLast(([key]) => key === name)?.[1] ?? "";
  return value.startsWith('"') ? unquoted(value) : value;
}

/** JSON on many lines, with every digit and escape as it came. Any other text stays as it is. */
function pretty(json) {
  try { JSON.parse(json); } catch { return json; }
  let [out, indent, before] = ["", "\n", ""];
  for (const [token] of json.matchAll(TOKEN)) {
    const isEnd = token === "}" || token === "]";
    const wasBegin = before === "{" || before === "[";
    if (isEnd) indent = indent.slice(0, -2);
    if (isEnd ? !wasBegin : wasBegin || before === ",") out += indent;
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") indent += "  ";
    before = token;
  }
  return out;
}

/** Arguments in short: `city: Oslo, days: 3`. */
function brief(json, most = 120) {
  const start = json.slice(0, most * 8);
  if (!start.startsWith("{")) return oneLine(start, most);
  return oneLine(members(start).map(([key, value]) => `${key && `${key}: `}${value.startsWith('"') ? unquoted(value) : value}`).join(", "), most);
}

// ---- The timeline

/** A section for each answer, with a row for each turn and call, in milliseconds since the answer began. Places come from `t`, durations and time
    stamps, since a recording that is played again has its old `t` and new stamps. `now` is the time of day, for what goes on. */
function timeline(s, now) {
  const sections = [];
  const rows = new Map();
  let section, cursor, anchor, turns;
  const placeOf = (stamp) => (stamp !== null && anchor ? Math.max(0, anchor.place + stamp - anchor.stamp) : cursor);
  const reach = (place) => {
    cursor = Math.max(cursor, place);
    section.total = Math.max(section.total, place);
  };
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
      else if (kind === "result") found.length = what.result?.ms ?? Math.max(0, place - found.start - found.wait);
      if (kind === "result") place = found.start + found.wait + found.length;
      found.waitsNow = kind === "wait";
      found.isOpen = kind !== "result";
    }
    if (at !== null) anchor = { stamp: at, place };
    reach(place);
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
const written = (pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
const keyHeader = (hasKey) => (hasKey ? ' -H "authorization: Bearer $KEY"' : "");

/** A command that asks what the response `item` was asked. The key stays the variable KEY. */
function curlOf(s, item, origin, hasKey) {
  const isResponses = item.front === "openai-responses";
  const lines = s.lines.slice(0, item.until);
  const request = members(lines.findLast(({ type }, place) => type === "request" && place > item.line)?.text ?? "{}");
  const member = (name) => request.filter(([key]) => key === name);
  // A message with `once` holds for its own response alone.
  const messages = lines.filter(({ type, text }, place) => type === "message" && (place > item.line || parsed(text).once !== true)).map(({ text }) => jsonText(text, "message"));
  const body = [["model", JSON.stringify(item.model)]];
  if (isResponses) body.push(["input", `[${messages.flatMap(responseItems)}]`]);
  else body.push(["messages", `[${messages.map((message) => written(members(message).filter(([key]) => key !== "reasoning" && key !== "provider")))}]`]);
  body.push(...member("tools"), ...member("tool_choice"));
  const notAgain = ["background", "conversation", "previous_response_id", "store", "stream"];
  if (isResponses || item.front === "openai-chat") body.push(...members(member("params")[0]?.[1] ?? "{}").filter(([key]) => !notAgain.includes(key)));
  const path = isResponses ? "/v1/responses" : "/v1/chat/completions";
  return `curl ${quoted(origin + path)}${keyHeader(hasKey)} -H 'content-type: application/json' -d ${quoted(written(body))}`;
}

/** A message as the items of Responses. */
function responseItems(text) {
  const message = parsed(text);
  const { role } = message;
  const content = contentOf(message);
  if (role === "tool") return [JSON.stringify({ type: "function_call_output", call_id: message.tool_call_id, output: content })];
  const calls = list(message.tool_calls).map(({ id, function: tool }) => JSON.stringify({ type: "function_call", call_id: id, name: tool.name, arguments: tool.arguments }));
  return content ? [JSON.stringify({ role, content }), ...calls] : calls;
}

// ---- The list of sessions

/** Takes a line of the stream of all sessions; `sessions` has what is known of each by its id. */
function reduceList(sessions, line, now) {
  const id = string(line.session);
  if (line.removed) return void sessions.delete(id);
  const event = object(line.event);
  const { type } = event;
  const entry = sessions.get(id) ?? { id, created: now, title: "", active: null, pending: new Set() };
  sessions.set(id, entry);
  entry.modified = now;
  if (type === "session") entry.created = number(event.created) ?? entry.created;
  if (type === "response") entry.active = string(event.id);
  if (type === "response_end" && entry.active === event.id) entry.active = null;
  if (type === "tool_result" && event.status === "pending") entry.pending.add(event.tool_id);
  else if (["tool_result", "tool_use", "approval"].includes(type)) entry.pending.delete(event.tool_id);
  if (type === "message" && object(event.message).role === "user" && !event.once) entry.title ||= titleOf(event.message);
}

/** An entry of `GET /v1/sessions`. */
function listed(summary) {
  const { id, created, modified, title, active_response_id: active, pending } = object(summary);
  return { id: string(id), created: number(created) ?? 0, modified: number(modified) ?? 0, title: string(title), active, pending: new Set(list(pending).map((call) => object(call).tool_id)) };
}
