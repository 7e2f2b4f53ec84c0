// The part of the page that needs no browser, bin/tc-serve/src/page/state.js: page_state.mjs BINARIES [CHECK…]
import assert from "node:assert";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createContext, runInContext } from "node:vm";
import { check } from "./harness.mjs";

const [binaries, ...named] = process.argv.slice(2);
const root = resolve(import.meta.dirname, "../..");
const source = readFileSync(join(root, "bin/tc-serve/src/page/state.js"), "utf8");
const { newSession, take, timeline, pretty, brief } = runInContext(`${source}\n;({ newSession, take, timeline, pretty, brief })`, createContext({ TextEncoder }));

/** The session of these lines. */
function sessionOf(lines) {
  const session = newSession("x");
  let end = 0;
  for (const line of lines) take(session, line, (end += Buffer.byteLength(line) + 1));
  return session;
}

const START = 1_700_000_000_000;
const begin = { type: "response", id: "r1", front: "openai-responses", model: "m1", timestamp: START };

/** The rows of a timeline: what, and its start, wait and length in milliseconds. */
function timelineOf(events, now = START) {
  const sections = timeline(sessionOf(events.map((event) => JSON.stringify(event))), now);
  return sections.flatMap(({ rows }) => rows.map(({ key, label, call, start, wait, length }) => [label, start, wait + (call ? 0 : key.first), length]));
}

// tc-view --format json keeps one call where a provider repeats an id in a later turn (the page has one card for each turn, as the other views
// have), and half a character that another half follows stays half there.
const NOT_COMPARED = ["bad-42-", "bad-73-", "replay-first-lines-of-an-event-stream", "replay-mistral-without-api"];

const value = (text) => { try { return JSON.parse(text); } catch { return text; } };

/** What is compared of an answer of tc-view. */
function expected({ text, reasoning = "", refusal = "", calls }) {
  return { text, reasoning, refusal, calls: calls.map(({ tool_id, tool_name, arguments: args, status, error, exit_code, output }) => ({ tool_id, tool_name, args, status, error, exit_code, output })) };
}

/** The same of the page: the texts of the last turn, and the calls since the user's last message. */
function answerOf(session, { stream, choice = 0 }) {
  const name = stream === undefined ? "" : JSON.stringify(stream);
  const who = `${name}\n${choice}`;
  const own = session.items.filter((item) => (item.call ?? item).who === who);
  const since = own.slice(own.findLastIndex((item) => item.voice === "user") + 1);
  const texts = (voice) => since.filter((item) => item.voice === voice && item.turn === (session.turns[name] ?? 0)).map((item) => item.text);
  const calls = since.filter((item) => item.call).map(({ call }) => {
    const result = call.state === "ended" ? call.result : {};
    return {
      tool_id: call.id, tool_name: call.name, args: value(call.arguments), status: result.status ?? (call.retracted ? "retracted" : undefined),
      error: call.state === "refused" ? call.code : undefined, exit_code: result.exit ?? undefined, output: result.output,
    };
  });
  return { text: texts("output").at(-1) ?? texts("answer").join(""), reasoning: texts("thinking").join(""), refusal: texts("refusal").join(""), calls };
}

const CHECKS = {
  async "the page makes of every recorded log what tc-view makes of it"() {
    const names = ["logs", "views", "cases"].flatMap((folder) => readdirSync(join(root, "fixtures", folder), { recursive: true }).map((name) => join(folder, name)));
    let count = 0;
    for (const name of names.filter((name) => name.endsWith(".ndjson") && !NOT_COMPARED.some((part) => name.includes(part)))) {
      const input = readFileSync(join(root, "fixtures", name));
      const view = spawnSync(`${binaries}/tc-view`, ["--format", "json"], { input, maxBuffer: 1 << 28 });
      // tc-view refuses what is not a log.
      if (view.status !== 0) continue;
      const session = sessionOf(input.toString().split("\n"));
      for (const line of view.stdout.toString().split("\n").filter(Boolean)) {
        const answer = JSON.parse(line);
        assert.deepEqual(answerOf(session, answer), expected(answer), name);
        count += 1;
      }
    }
    assert.ok(count > 300, `${count} answers`);
    console.log(`  ${count} answers of ${names.length} files`);
  },

  async "a card ends with its stream, and an approval has its reason"() {
    const lines = readFileSync(join(root, "fixtures/views/arriving/in.ndjson"), "utf8").trim().split("\n");
    const states = (count) => sessionOf(lines.slice(0, count)).calls.map(({ state }) => state);
    const end = (n) => lines.findIndex((line, at) => line.includes("stream_end") && at >= n);
    assert.deepEqual(states(end(0)), ["arriving", "arriving"]);
    assert.deepEqual(states(end(0) + 1), ["called", "called"]);
    assert.deepEqual(states(end(6) + 1), ["called", "called", "incomplete"]);
    const approval = { type: "approval", tool_id: "c", tool_name: "f", decision: "denied", by: "ann", reason: "Too many beds." };
    assert.equal(sessionOf([JSON.stringify(approval)]).items.at(-1).text, "f: denied by ann: Too many beds.");
  },

  async "a timeline has turns and calls by what they took and what they waited"() {
    const call = (id) => ({ tool_id: id, tool_name: id });
    const rows = timelineOf([
      begin, { type: "stream_start", v: 1, t: 0, model: "m1" }, { type: "content_delta", t: 700, text: "x" },
      // Two calls at the same time: one while the model still writes, both with the times of `t` although the stamps are those of a fast replay.
      { type: "tool_use", t: 800, ...call("a"), timestamp: START + 3 }, { type: "tool_use", t: 900, ...call("b"), timestamp: START + 4 },
      { type: "session_stats", t: 1000, first_event_ms: 500, completion_tokens: 7 }, { type: "stream_end", t: 1000, finish_reason: "tool_calls" },
      { type: "tool_result", ...call("b"), status: "success", duration_ms: 50, timestamp: START + 54 }, { type: "tool_result", ...call("a"), status: "error", duration_ms: 3000, timestamp: START + 3003 },
      { type: "stream_start", v: 1, t: 0 }, { type: "stream_end", t: 200, finish_reason: "tool_calls" },
      // A person takes 5 s, and the call a tenth of a second.
      { type: "tool_result", ...call("c"), status: "pending", timestamp: START + 4000 }, { type: "approval", ...call("c"), decision: "approved", timestamp: START + 8900 },
      { type: "tool_use", ...call("c"), timestamp: START + 9000 }, { type: "tool_result", ...call("c"), status: "success", duration_ms: 100, timestamp: START + 9100 },
    ]);
    assert.deepEqual(rows, [
      ["turn 1", 0, 500, 1000], ["a", 1300, 0, 3000], ["b", 1400, 0, 50],
      ["turn 2", 4300, 0, 200], ["c", 5297, 5000, 100],
    ]);
    // A call that still runs ends now.
    assert.deepEqual(timelineOf([begin, { type: "tool_use", ...call("d"), timestamp: START + 100 }], START + 2100), [["d", 100, 0, 2000]]);
  },

  async "a call of a later turn is a card of its own, although its id is that of an earlier one"() {
    const call = [{ type: "stream_start", v: 1, t: 0 }, { type: "tool_call", index: 0, tool_id: "call_0", tool_name: "look", arguments: {} }];
    const result = { type: "tool_result", tool_id: "call_0", tool_name: "look", status: "success", output: "" };
    const { calls } = sessionOf([...call, result, ...call].map((event) => JSON.stringify(event)));
    assert.deepEqual(calls.map(({ state }) => state), ["ended", "called"]);
  },

  async "arguments keep the digits of their numbers"() {
    const line = '{"type":"tool_call","tool_id":"a","tool_name":"pay","arguments":{"sum":12345678901234567890.10,"to":["x"],"__proto__":1e400}}';
    const [call] = sessionOf([line]).calls;
    assert.equal(call.arguments, '{"sum":12345678901234567890.10,"to":["x"],"__proto__":1e400}');
    assert.equal(pretty(call.arguments), '{\n  "sum": 12345678901234567890.10,\n  "to": [\n    "x"\n  ],\n  "__proto__": 1e400\n}');
    assert.equal(call.brief, 'sum: 12345678901234567890.10, to: ["x"], __proto__: 1e400');
    for (const text of ['{"cut": 1', "no JSON", ""]) assert.deepEqual([pretty(text), brief(text)], [text, text]);
  },
};

process.exit(await check(CHECKS, named) ? 1 : 0);
