// What a session holds, made of its events: texts, notes and calls in order, and when what happened. Nothing here touches the document, the
// network or a clock, so tests run it over recorded logs. `reduce` changes the session that it is given, and names what has changed in
// `changed`: a copy for each event would cost more than the event. The rules about calls are those of crates/view/src/calls.rs.
"use strict";

/** A session before its first event. */
function newSession(id) {
  return {
    id, end: 0, lines: [], items: [], calls: [], byId: new Map(), changed: new Set(), marks: [], who: "", turns: new Set(), turnOf: {}, withoutId: 0,
    paused: true, decision: null, failed: null, turn: null, response: null, active: null, model: "", title: "", created: 0, read: 0, written: 0,
  };
}

const string = (value) => (typeof value === "string" ? value : "");
const number = (value) => (typeof value === "number" ? value : null);
const object = (value) => (value !== null && typeof value === "object" ? value : {});
const list = (value) => (Array.isArray(value) ? value : []);
const plain = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));
const whoOf = (event) => (event.stream === undefined ? "" : JSON.stringify(event.stream)) + "\n" + (number(event.choice) ?? 0);
const streamOf = (who) => who.slice(0, who.lastIndexOf("\n"));
const utf8 = new TextEncoder();

/** Takes the event of a line of the session that ends at the byte `end`. A line that was taken before changes nothing. */
function take(session, text, end) {
  if (end <= session.end) return;
  session.end = end;
  if (text === "") return;
  let event = null;
  try { event = object(JSON.parse(text)); } catch { event = {}; }
  session.lines.push({ end, text, type: string(event.type) || "not an event" });
  reduce(session, event, text);
}

/** Takes an event. `text` is its line, of which numbers in arguments keep their digits. */
function reduce(session, event, text = JSON.stringify(event)) {
  // A line of a log may be a message alone.
  if (event.type === undefined && typeof event.role === "string") event = { type: "message", message: event };
  const rule = Object.hasOwn(RULES, event.type) ? RULES[event.type] : null;
  const speaks = ["content_delta", "refusal_delta", "thinking"].includes(event.type);
  if (!speaks) showDecision(session);
  if (speaks || ["tool_call_delta", "tool_call_partial", "tool_call"].includes(event.type)) session.turns.add(whoOf(event));
  if (session.turn && number(event.t) !== null) session.turn.last = Math.max(session.turn.last, event.t);
  if (rule) rule(session, event, text);
}

// ---- Texts and notes

function add(session, item) {
  item.key = session.items.length;
  session.items.push(item);
  session.changed.add(item.key);
  return item;
}

function turnTo(session, who) {
  if (session.who === who) return;
  const isFirst = session.who === "";
  session.who = who;
  if (isFirst && who === "\n0") return;
  session.paused = true;
  const [stream, choice] = who.split("\n");
  const name = stream === "" ? "the unnamed stream" : plain(JSON.parse(stream));
  add(session, { kind: "note", tone: "heading", text: choice === "0" ? name : `${name}, choice ${choice}` });
}

function speak(session, event, voice, text) {
  if (text === "") return;
  const who = whoOf(event);
  turnTo(session, who);
  const last = session.items.at(-1);
  if (!session.paused && last?.kind === "text" && last.voice === voice) {
    last.text += text;
    session.changed.add(last.key);
  } else {
    add(session, { kind: "text", voice, text, who, turn: session.turnOf[who] ?? 0 });
  }
  session.paused = false;
}

function note(session, event, tone, text) {
  if (event.stream !== undefined) turnTo(session, whoOf(event));
  add(session, { kind: "note", tone, text });
}

function showDecision(session) {
  const decision = session.decision;
  session.decision = null;
  if (decision) note(session, decision, "quiet", `${decision.tool_call ? "a tool call" : "no tool call"} (${string(decision.checker)}: ${string(decision.reason)})`);
}

/** The text of a message: a string, or the text parts of a list. Other parts are shown by their type, so an image is never loaded. */
function contentOf(message) {
  const content = message.content;
  return Array.isArray(content) ? content.map((part) => plain(object(part).text) || `[${plain(object(part).type)}]`).join("") : plain(content);
}

function notice(session, event, tone) {
  const [source, code] = [string(event.source), string(event.code)];
  note(session, event, tone, (source && source + ": ") + string(event.message) + (code && ` (${code})`));
}

// ---- Calls

function newCall(session, event, id, name) {
  const call = {
    who: whoOf(event), id: "", name, index: null, arguments: "", bytes: 0, state: "arriving", code: "", summary: "", progress: null, result: null,
    isClosed: false, isCancelled: false, cameWhole: false, wasStarted: false, fromText: false, repairs: 0, hash: "", why: "", decision: "", output: "",
  };
  session.calls.push(call);
  session.withoutId += 1;
  identify(session, call, id);
  turnTo(session, call.who);
  call.key = add(session, { kind: "call", call }).key;
  return call;
}

function identify(session, call, id) {
  if (call.id !== "" || id === "") return;
  call.id = id;
  session.withoutId -= 1;
  session.byId.set(id, call);
}

const find = (session, event, is) => session.calls.findLast((call) => call.who === whoOf(event) && is(call));
const isArriving = (call) => !call.isClosed && call.state === "arriving";

/** The call of this id, even after its turn, since tools may take longer than that. */
function known(session, event, id) {
  const call = id === "" ? undefined : session.byId.get(id);
  return call === undefined || call.who === whoOf(event) ? call : find(session, event, (call) => call.id === id);
}

/** The call of this id in the current turn: some servers number the calls of each turn anew. */
function open(session, event, id) {
  const call = known(session, event, id);
  return call?.isClosed ? undefined : call;
}

/** The call that an event of its run names. */
function ran(session, event) {
  const id = string(event.tool_id);
  const call = known(session, event, id) ?? newCall(session, event, id, string(event.tool_name));
  session.changed.add(call.key);
  return call;
}

function setArguments(call, text) {
  call.arguments = text;
  call.bytes = utf8.encode(text).length;
}

function delta(session, event) {
  const [id, name] = [string(event.tool_id), string(event.tool_name)];
  const index = number(event.index);
  let call = id ? open(session, event, id) : find(session, event, (call) => isArriving(call) && call.index === index);
  if (!call && !id && name) {
    // Where deltas are kept, the delta that completed a call follows it.
    const whole = find(session, event, (call) => call.cameWhole && !call.isClosed && call.name === name);
    if (whole) {
      whole.cameWhole = false;
      return;
    }
  }
  if (call && !isArriving(call)) return;
  if (!call && !id && typeof event.tool_name !== "string") return;
  call ??= newCall(session, event, id, "");
  call.index = index;
  call.name ||= name;
  call.fromText ||= event.from_text === true;
  const piece = typeof event.arguments === "string" ? event.arguments : plain(event.arguments);
  call.arguments += piece;
  call.bytes += utf8.encode(piece).length;
  session.changed.add(call.key);
}

function partial(session, event, text) {
  const id = string(event.tool_id);
  const call = open(session, event, id) ?? newCall(session, event, id, string(event.tool_name));
  if (isArriving(call)) setArguments(call, jsonText(text, "arguments"));
  session.changed.add(call.key);
}

function toolCall(session, event, text) {
  const [id, name] = [string(event.tool_id), string(event.tool_name)];
  let call = open(session, event, id);
  // A call without an id gets one when its deltas are merged: the first of that name without an id.
  if (!call && session.withoutId > 0) call = session.calls.find((call) => isArriving(call) && call.who === whoOf(event) && call.id === "" && call.name === name);
  const isFirst = !call;
  call ??= newCall(session, event, "", "");
  identify(session, call, id);
  call.cameWhole ||= isFirst;
  call.name = name;
  call.index = number(event.index);
  const isNull = event.arguments === null || event.arguments === undefined;
  setArguments(call, isNull ? string(event.arguments_text) : jsonText(text, "arguments"));
  call.repairs = list(event.repairs).length;
  session.changed.add(call.key);
  if (call.state !== "arriving" && call.state !== "called") return;
  const error = object(event.error);
  call.state = event.error ? "refused" : "called";
  if (!event.error) return;
  call.code = string(error.code);
  call.summary = string(error.message);
}

function used(session, event) {
  const call = ran(session, event);
  call.state = "running";
  call.wasStarted = true;
  if (call.arguments === "") setArguments(call, string(event.input_summary));
  mark(session, event, "use", call);
}

function progressed(session, event) {
  const call = ran(session, event);
  const lines = string(event.text).split("\n").filter((line) => line.trim() !== "");
  call.summary = lines.at(-1) ?? call.summary;
  call.progress = number(event.progress) ?? call.progress;
  call.output += string(event.text);
}

function ended(session, event) {
  const call = ran(session, event);
  const status = string(event.status);
  call.summary = string(event.output_summary);
  call.result = {
    status, output: string(event.output), ms: number(event.duration_ms), exit: number(event.exit_code), isCached: event.cached === true,
    isTruncated: event.truncated === true, bytes: number(event.output_bytes), isRetracted: call.state === "retracted",
  };
  call.state = "ended";
  call.hash = string(event.hash);
  call.decision = "";
  if (status === "pending") call.why = call.result.output.split(" It waits for a person")[0];
  mark(session, event, status === "pending" ? "wait" : "result", call);
  if (event.return_directly === true) speak(session, event, "output", call.result.output);
}

function retract(session, event) {
  const id = string(event.tool_id);
  const index = number(event.index);
  const call = id ? known(session, event, id) : index === null ? undefined : find(session, event, (call) => call.index === index);
  if (!call || call.state === "retracted") return;
  session.changed.add(call.key);
  if (!call.result) {
    call.state = "retracted";
  } else if (!call.result.isRetracted) {
    // It ran before it was retracted: its card keeps the result.
    call.result.isRetracted = true;
    note(session, event, "warning", `${call.name} was taken back (${string(event.reason)})`);
  }
}

/** The calls of an assistant message whose turn has no other events. */
function asked(session, event, message) {
  for (const each of list(message.tool_calls).map(object)) {
    const call = newCall(session, event, string(each.id), plain(object(each.function).name));
    call.state = "called";
    setArguments(call, plain(object(each.function).arguments));
  }
}

/** A `tool` message is the result of a call without a `tool_result` in the log. */
function answered(session, event, message) {
  const id = string(message.tool_call_id);
  if (!id) return;
  const call = find(session, event, (call) => call.id === id) ?? newCall(session, event, id, plain(message.name));
  if (call.state === "ended" || call.state === "retracted") return;
  call.state = "ended";
  call.result = { status: "answered", output: contentOf(message), ms: null, exit: null };
  session.changed.add(call.key);
}

/** Changes each call for which `is` holds. */
function changeCalls(session, is, change) {
  for (const call of session.calls) {
    if (!is(call)) continue;
    change(call);
    session.changed.add(call.key);
  }
}

// ---- Messages, turns and responses

function message(session, event) {
  const message = object(event.message);
  const who = whoOf(event);
  if (message.role === "user") {
    session.paused = true;
    speak(session, event, "user", contentOf(message));
    session.title ||= contentOf(message).trim().split("\n")[0].slice(0, 200);
    session.paused = true;
  } else if (message.role === "assistant" && session.turns.has(who)) {
    session.turns.delete(who);
    session.paused = true;
  } else if (message.role === "assistant") {
    newTurn(session, who);
    speak(session, event, "thinking", plain(message.reasoning));
    speak(session, event, "answer", contentOf(message));
    speak(session, event, "refusal", plain(message.refusal));
    asked(session, event, message);
  } else if (message.role === "tool") {
    answered(session, event, message);
  }
}

function endTurn(session, event) {
  const stream = streamOf(whoOf(event));
  for (const who of session.turns) if (streamOf(who) === stream) session.turns.delete(who);
  session.paused = true;
}

/** The texts from now on are not of the turn before. */
const newTurn = (session, who) => (session.turnOf[who] = (session.turnOf[who] ?? 0) + 1);

function streamStart(session, event) {
  endTurn(session, event);
  newTurn(session, whoOf(event));
  const stream = streamOf(whoOf(event));
  changeCalls(session, (call) => !call.isClosed && streamOf(call.who) === stream, (call) => (call.isClosed = true));
  session.model = string(event.model) || session.model;
  session.turn = { model: string(event.model), last: number(event.t) ?? 0, first: 0, reason: "", tokens: null };
  session.marks.push({ kind: "turn", turn: session.turn });
  if (session.response) session.response.until ??= session.lines.length;
}

const REASONS = {
  length: "the answer was cut at the token limit", content_filter: "the provider's content filter stopped the answer",
  cancelled: "cancelled", cut: "the connection ended before the answer did",
};

function streamEnd(session, event) {
  const stream = streamOf(whoOf(event));
  if (event.finish_reason === "cancelled") {
    changeCalls(session, (call) => streamOf(call.who) === stream && !call.isClosed && !call.result, (call) => (call.isCancelled = true));
  }
  endTurn(session, event);
  if (session.turn) {
    session.turn.reason = string(event.finish_reason);
    session.marks.push({ kind: "end", turn: session.turn });
    session.turn = null;
  }
  const isReported = session.failed === stream;
  if (isReported) session.failed = null;
  if (Object.hasOwn(REASONS, event.finish_reason) && !(event.finish_reason === "cut" && isReported)) note(session, event, "warning", REASONS[event.finish_reason]);
}

function stats(session, event) {
  session.read += number(event.prompt_tokens) ?? 0;
  session.written += number(event.completion_tokens) ?? 0;
  if (!session.turn) return;
  session.turn.first = number(event.first_event_ms) ?? session.turn.first;
  session.turn.tokens = number(event.completion_tokens);
}

function response(session, event) {
  session.paused = true;
  session.active = string(event.id);
  const item = { kind: "response", id: session.active, front: string(event.front), model: string(event.model), at: number(event.timestamp), line: session.lines.length, status: "" };
  session.response = add(session, item);
  session.model ||= item.model;
  mark(session, event, "response", item);
}

function responseEnd(session, event) {
  const item = session.items.findLast((item) => item.kind === "response" && item.id === event.id);
  const status = string(event.status);
  if (item && (item.status === "" || status === "deleted")) {
    item.status = status;
    session.changed.add(item.key);
  }
  if (session.active === event.id) session.active = null;
  if (status === "deleted") return;
  // No event of it can come any more: a call that runs has no result.
  changeCalls(session, (call) => call.state === "running", (call) => (call.state = "lost"));
  if (session.turn) session.marks.push({ kind: "end", turn: session.turn });
  session.turn = null;
  mark(session, event, "response_end", item);
  if (["incomplete", "failed", "interrupted", "cancelled"].includes(status)) note(session, event, status === "failed" || status === "interrupted" ? "error" : "warning", `the answer is ${status}`);
}

/** Notes when something happened, for the timeline. */
function mark(session, event, kind, what) {
  session.marks.push({ kind, what, turn: session.turn, t: number(event.t), at: number(event.timestamp) });
}

const RULES = {
  thinking: (session, event) => speak(session, event, "thinking", string(event.text)),
  content_delta: (session, event) => speak(session, event, "answer", string(event.text)),
  refusal_delta: (session, event) => speak(session, event, "refusal", string(event.text)),
  tool_call_delta: delta, tool_call_partial: partial, tool_call: toolCall, tool_use: used, tool_progress: progressed, tool_result: ended, retract,
  message, stream_start: streamStart, stream_end: streamEnd, session_stats: stats, response, response_end: responseEnd,
  warning: (session, event) => notice(session, event, "warning"),
  error: (session, event) => {
    session.failed = streamOf(whoOf(event));
    notice(session, event, "error");
  },
  decision: (session, event) => (session.decision = event),
  approval: (session, event) => {
    const by = string(event.by) || string(event.source);
    const call = known(session, event, string(event.tool_id));
    if (call) {
      call.decision = string(event.decision);
      session.changed.add(call.key);
      mark(session, event, "approval", call);
    }
    note(session, event, "quiet", `${string(event.tool_name)}: ${string(event.decision)}${by && ` by ${by}`}`);
  },
  server_item: (session, event) => note(session, event, "quiet", `${string(event.kind)} (run by the provider)`),
  cancel: (session, event) => note(session, event, "quiet", `${event.tool_id ? `the call ${string(event.tool_id)}` : "the answer"} was cancelled by ${string(event.by)}`),
  session: (session, event) => {
    session.created ||= number(event.created) ?? 0;
    const origin = string(object(event.fork).id);
    if (origin) note(session, event, "quiet", `continues session ${origin}`);
  },
};

// ---- Words for people

/** The state of a card, and the word for it: those of `CallCard::status` in crates/view/src/calls.rs. */
function status(call) {
  const cancelled = ["cancelled", call.wasStarted ? "cancelled" : "cancelled, not run"];
  if (call.state === "ended") {
    const status = call.result.status;
    if (status === "cancelled") return cancelled;
    if (status === "success" || status === "answered") return ["done", "done"];
    if (status === "pending") return call.decision ? ["waits", call.decision] : ["waits", "waits for approval"];
    return [["denied", "invalid", "unknown_tool"].includes(status) ? "refused" : "failed", status.replaceAll("_", " ")];
  }
  if (call.isCancelled) return cancelled;
  return {
    lost: ["cancelled", "no result"], arriving: ["arriving", "arriving"], called: ["called", "called"], refused: ["refused", `refused: ${call.code}`],
    running: ["running", "running"], retracted: ["retracted", "taken back"],
  }[call.state];
}

/** What else is known of a call, in short. */
function figures(call) {
  const result = call.result;
  const all = [];
  if (call.state === "arriving") all.push(bytesText(call.bytes));
  if (call.state === "running" && call.progress !== null) all.push(progressText(call));
  if (call.fromText) all.push("from text");
  if (call.repairs > 0) all.push("repaired");
  if (result && result.exit) all.push(`exit ${result.exit}`);
  if (result && result.isCached) all.push("cached");
  if (result && result.ms !== null) all.push(duration(result.ms));
  return all.join(", ");
}

const progressText = (call) => `${Math.round(Math.min(1, Math.max(0, call.progress)) * 100)} %${call.summary && ` · ${call.summary}`}`;

/** Whether a person can answer the call now. */
const waits = (call) => call.state === "ended" && call.result.status === "pending" && call.decision === "";

/** Milliseconds for people: `0.4 ms`, `12 ms`, `1.2 s`, `2 min 3 s`. */
function duration(ms) {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
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
    const code = sign.codePointAt(0);
    const hex = code.toString(16);
    return code <= 0xff ? `\\x${hex.padStart(2, "0")}` : code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\u{${hex}}`;
  });
}

const oneLine = (text, most) => safe(text.slice(0, most * 4).replace(/\s+/g, " ").trim()).slice(0, most);

// ---- JSON without a tree, so that a person approves the digits that the tool gets

const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** The members of an object, or the items of a list, as [key, text of the value]; null for any other text. */
function members(json) {
  const all = [];
  let [depth, key, begin, end] = [0, null, -1, 0];
  const close = () => begin >= 0 && all.push([key, json.slice(begin, end)]);
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    if (depth === 0 && token !== "{" && token !== "[") return null;
    if (depth === 1 && token === ":" && key === null && begin >= 0) {
      key = json.slice(begin, end);
      begin = -1;
    } else if (depth === 1 && (token === "," || token === "}" || token === "]")) {
      close();
      [key, begin] = [null, -1];
    } else if (depth === 1 && begin < 0) {
      begin = index;
    }
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    end = index + token.length;
    if (depth === 0) return all.map(([key, value]) => [key === null ? null : unquoted(key), value]);
  }
  close();
  return all.map(([key, value]) => [key === null ? null : unquoted(key), value]);
}

function unquoted(token) {
  try { return plain(JSON.parse(token)); } catch { return token; }
}

/** The text of a member of an object; of a repeated key the last counts. A string is its text. */
function jsonText(line, name) {
  const value = members(line)?.findLast(([key]) => key === name)?.[1] ?? "";
  return value.startsWith('"') ? unquoted(value) : value;
}

/** JSON on many lines, with every digit and escape as it came. Any other text stays as it is. */
function pretty(json) {
  try { JSON.parse(json); } catch { return json; }
  let [out, depth, before] = ["", 0, ""];
  const feed = () => "\n" + "  ".repeat(depth);
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (before !== "{" && before !== "[") out += feed();
    } else if (before === "{" || before === "[" || before === ",") {
      out += feed();
    }
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out;
}

/** Arguments in short: `city: Oslo, days: 3`. */
function brief(json, most = 120) {
  const start = json.slice(0, most * 8);
  const all = start.trimStart().startsWith("{") ? members(start) : null;
  if (!all) return oneLine(start, most);
  return oneLine(all.map(([key, value]) => `${key === null ? "" : key + ": "}${value.startsWith('"') ? unquoted(value) : value}`).join(", "), most);
}

// ---- The timeline

/** The rows of the timeline, a section for each answer: turns, and the calls in them, by milliseconds since the answer began. `now` is the time of
    day for what goes on. Times come from `t`, durations and time stamps, since a recording that is played again has old `t` and new time stamps. */
function timeline(session, now) {
  const sections = [];
  let section = null, cursor = 0, anchor = null, count = 0;
  const rows = new Map();
  const at = (stamp) => (typeof stamp === "number" && anchor ? Math.max(0, anchor.at + stamp - anchor.stamp) : cursor);
  const begin = (label, item) => {
    sections.push((section = { label, item, rows: [], total: 0 }));
    cursor = 0;
    anchor = null;
    count = 0;
  };
  const reach = (place) => {
    cursor = Math.max(cursor, place);
    section.total = Math.max(section.total, place);
  };
  const row = (key, label, start) => {
    const found = { key, label, start, wait: 0, length: 0, word: "", state: "", item: null, isOpen: true };
    rows.set(key, found);
    section.rows.push(found);
    return found;
  };
  for (const { kind, what, turn, t = null, at: stamp } of session.marks) {
    if (kind === "response" || !section) begin(what?.model ?? "", kind === "response" ? what : null);
    const origin = turn && rows.get(turn);
    let place = origin && t !== null ? origin.start + turn.first + t : at(stamp);
    if (kind === "turn") {
      count += 1;
      row(turn, `turn ${count}`, cursor).word = turn.model;
    } else if (kind === "end") {
      if (origin) {
        origin.length = turn.last;
        origin.isOpen = false;
        origin.word = [turn.reason.replaceAll("_", " "), turn.tokens !== null && `${turn.tokens} tokens`].filter(Boolean).join(", ");
        place = origin.start + turn.first + turn.last;
      }
    } else if (kind === "wait" || kind === "use" || kind === "result") {
      let found = rows.get(what);
      if (!found || !section.rows.includes(found)) found = row(what, what.name, kind === "result" && what.result?.ms ? Math.max(0, place - what.result.ms) : place);
      found.item = what.key;
      if (kind === "wait") found.isWaiting = true;
      if (kind === "use") [found.wait, found.isWaiting] = [found.isWaiting ? place - found.start : 0, false];
      if (kind === "result") {
        const ms = what.result?.ms;
        if (found.isWaiting) found.wait = place - found.start;
        else found.length = typeof ms === "number" ? ms : Math.max(0, place - found.start - found.wait);
        place = found.start + found.wait + found.length;
        [found.isOpen, found.isWaiting] = [false, false];
      }
    }
    if (typeof stamp === "number") anchor = { stamp, at: place };
    reach(place);
  }
  for (const [key, found] of rows) {
    const isCall = found.item !== null;
    [found.state, found.word] = isCall ? status(key) : ["", found.word];
    found.first = isCall ? 0 : key.first;
    if (!found.isOpen || !section.rows.includes(found)) continue;
    const end = session.active ? Math.max(cursor, at(now)) : cursor;
    if (found.isWaiting) found.wait = Math.max(0, end - found.start);
    else found.length = Math.max(isCall ? 0 : key.last, end - found.start - found.wait);
    section.total = Math.max(section.total, found.start + found.wait + found.length);
  }
  return sections;
}

// ---- Commands to copy

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const written = (pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
const without = (json, names) => written((members(json) ?? []).filter(([key]) => !names.includes(key)));

/** A command that asks what the response `item` was asked. The key stays the variable KEY. */
function curlOf(session, item, origin, hasKey) {
  const isResponses = item.front === "openai-responses";
  let request = "{}";
  const messages = [];
  for (const [place, { type, text }] of session.lines.slice(0, item.until ?? session.lines.length).entries()) {
    if (type === "request" && place >= item.line - 1) request = text;
    if (type !== "message") continue;
    const isOnce = JSON.parse(text).once === true;
    if (!isOnce || place >= item.line - 1) messages.push(jsonText(text, "message"));
  }
  const ofRequest = (members(request) ?? []).filter(([key]) => key === "tools" || key === "tool_choice");
  const params = members(jsonText(request, "params")) ?? [];
  const body = [["model", JSON.stringify(item.model)]];
  if (isResponses) {
    body.push(["input", `[${messages.flatMap(responseItems).join(",")}]`]);
    body.push(...ofRequest.map(([key, value]) => [key, key === "tools" ? `[${members(value)?.map(([, tool]) => flatTool(tool)).join(",")}]` : value]));
  } else {
    body.push(["messages", `[${messages.map((message) => without(message, ["reasoning", "provider"])).join(",")}]`], ...ofRequest);
  }
  const isOwn = isResponses || item.front === "openai-chat";
  if (isOwn) body.push(...params.filter(([key]) => !["background", "conversation", "previous_response_id", "stream", "store"].includes(key)));
  const path = isResponses ? "/v1/responses" : "/v1/chat/completions";
  return `curl ${quoted(origin + path)}${keyHeader(hasKey)} -H 'content-type: application/json' -d ${quoted(written(body))}`;
}

const keyHeader = (hasKey) => (hasKey ? ' -H "authorization: Bearer $KEY"' : "");

/** A message as the items of Responses. */
function responseItems(text) {
  const message = JSON.parse(text);
  if (message.role === "tool") return [JSON.stringify({ type: "function_call_output", call_id: message.tool_call_id, output: contentOf(message) })];
  const parts = list(message.content).map((part) => (object(part).type === "text" ? { ...part, type: message.role === "assistant" ? "output_text" : "input_text" } : part));
  const content = Array.isArray(message.content) ? parts : plain(message.content);
  const calls = list(message.tool_calls).map((call) => JSON.stringify({ type: "function_call", call_id: call.id, name: object(call.function).name, arguments: object(call.function).arguments }));
  return content.length > 0 ? [JSON.stringify({ role: message.role, content }), ...calls] : calls;
}

/** A tool in the shape of Responses. */
function flatTool(text) {
  const inner = jsonText(text, "function");
  return inner ? written([["type", '"function"'], ...members(inner)]) : text;
}

// ---- The list of sessions

/** Takes a line of the stream of all sessions; `sessions` has what is known of each by its id. Returns whether the list has changed. */
function reduceList(sessions, line, now) {
  const id = string(line.session);
  if (line.removed) return sessions.delete(id);
  const event = object(line.event);
  const known = sessions.get(id);
  const entry = known ?? { id, created: now, modified: now, title: "", active: null, pending: new Set() };
  if (!known) sessions.set(id, entry);
  const before = JSON.stringify([entry.title, entry.active, entry.pending.size]);
  entry.modified = now;
  if (event.type === "session") entry.created = number(event.created) ?? entry.created;
  if (event.type === "response") entry.active = string(event.id);
  if (event.type === "response_end" && entry.active === event.id) entry.active = null;
  if (event.type === "tool_result" && event.status === "pending") entry.pending.add(string(event.tool_id));
  else if (["tool_result", "tool_use", "approval"].includes(event.type)) entry.pending.delete(string(event.tool_id));
  const message = object(event.message);
  if (event.type === "message" && message.role === "user" && !event.once) entry.title ||= contentOf(message).trim().split("\n")[0].slice(0, 200);
  return !known || before !== JSON.stringify([entry.title, entry.active, entry.pending.size]);
}

/** An entry of `GET /v1/sessions`. */
function listed(summary) {
  const { id, created, modified, title, active_response_id: active, pending } = object(summary);
  return { id: string(id), created: number(created) ?? 0, modified: number(modified) ?? 0, title: string(title), active: string(active) || null, pending: new Set(list(pending).map((call) => string(object(call).tool_id))) };
}
