// The page of tc-serve in Chromium, before a real service: page.mjs BINARIES [CHECK…|--speed]
//
// With --speed it checks nothing, and prints how fast the page is: times differ from machine to machine.
//
// The model is a script that sends what a check tells it to, so that each state can be seen without waiting for a time. Events that no tool here
// makes (progress, a repair, markup in every field) are written into session files, as any program may. A violation of the policy, an error on
// the console, and a mark that injected markup would leave fail the check in which they happen. CLIENTS is the folder of tests/clients/install.
import assert from "node:assert";
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { browse, check, listen, scratch, serve, violations } from "./harness.mjs";

const [binaries, ...named] = process.argv.slice(2);
const folder = scratch("page");
const sessions = join(folder, "sessions");

// ---- A model that sends what it is told

/** Answers of the model that the service has asked for, in order; `next()` waits for one. */
class Model {
  asked = [];
  waiting = [];
  server = createServer(async (request, response) => {
    if (request.method === "GET") return void response.setHeader("content-type", "application/json").end(JSON.stringify({ object: "list", data: [{ id: "m1", object: "model" }, { id: BAD, object: "model" }] }));
    let body = "";
    for await (const piece of request) body += piece;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const turn = new Turn(JSON.parse(body), response);
    const waits = this.waiting.shift();
    if (waits) waits(turn);
    else this.asked.push(turn);
  });

  next() {
    const turn = this.asked.shift();
    return turn ? Promise.resolve(turn) : new Promise((done) => this.waiting.push(done));
  }
}

class Turn {
  constructor(request, response) {
    Object.assign(this, { request, response, closed: new Promise((done) => response.on("close", done)) });
  }
  send(delta, finish_reason = null) {
    this.response.write(`data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", created: 1, model: "m1", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
  }
  text(content) { this.send({ content }); }
  call(id, name, args) { this.send({ tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: args } }] }); }
  end(reason = "stop") {
    this.send({}, reason);
    this.response.end("data: [DONE]\n\n");
  }
  /** A whole answer: a text, or a call. */
  says(content) {
    this.text(content);
    this.end();
  }
  calls(id, name, args) {
    this.call(id, name, args);
    this.end("tool_calls");
  }
}

/** A network between the page and the service, which can lose what it carries. */
class Network {
  sockets = new Set();
  server = createTcpServer((client) => {
    const upstream = connect(service.port, "127.0.0.1");
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      this.sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => (this.sockets.delete(from), to.destroy()));
      from.pipe(to);
    }
  });

  silence() {
    for (const socket of this.sockets) socket.unpipe().resume();
  }
  cut() {
    for (const socket of this.sockets) socket.destroy();
  }
}

// ---- Tools, and sessions that are written by hand

const TOOL = (name, properties, command, kind) => ({ type: "function", function: { name, description: name, parameters: { type: "object", properties } }, exec: { command, class: kind, timeout: "60s" } });

function makeTools() {
  const script = (name, text) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  };
  script("look", 'echo "found $1"');
  script("change", `echo "$1" >>'${folder}/changed'; echo "changed $1"`);
  script("block", `echo begun; cat '${folder}/pipe'`);
  script("fail", "echo no such hut >&2; exit 3");
  execFileSync("mkfifo", [join(folder, "pipe")]);
  const text = { q: { type: "string" }, n: { type: "integer" } };
  writeFileSync(join(folder, "tools.json"), JSON.stringify([
    TOOL("look", text, ["./look", "{q}"], "read"), TOOL("change", text, ["./change", "{q}"], "write"), TOOL("block", {}, ["./block"], "read"), TOOL("fail", {}, ["./fail"], "read"),
  ]));
}

const START = 1_700_000_000_000;
let made = 0;

/** A session file: `write` appends events to it. */
function session(events = []) {
  const id = randomBytes(16).toString("hex");
  mkdirSync(join(sessions, id.slice(0, 2)), { recursive: true, mode: 0o700 });
  const file = join(sessions, id.slice(0, 2), `${id}.ndjson`);
  const write = (...more) => appendFileSync(file, more.map((event) => `${typeof event === "string" ? event : JSON.stringify(event)}\n`).join(""), { mode: 0o600 });
  // Later than the one before: the list is sorted by it.
  write({ type: "session", v: 1, id, created: Date.now() + (made += 1) }, ...events);
  return { id, file, write };
}

const user = (content) => ({ type: "message", message: { role: "user", content } });
const begin = (id) => ({ type: "response", id, front: "openai-responses", api: "openai-chat", model: "m1", background: true, body_hash: "x", timestamp: START });

// ---- The page

const BAD = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>"'\`\${window.ran=1}</style></script><!--javascript:window.ran=1`;
let browser, model, service;

/** A page in a context of its own, which collects what must not happen. */
async function open(hash = "", { url = service.url, width = 1200, colorScheme = "light", hasClock = false, bypassCSP = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.wrong = [];
  // The service is killed in one check: that a request fails then is not an error of the page.
  page.on("console", (message) => message.type() === "error" && !/Failed to load resource/.test(message.text()) && page.wrong.push(message.text()));
  page.on("pageerror", (error) => page.wrong.push(error.stack));
  await page.addInitScript(() => {
    window.copied = [];
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    navigator.clipboard.writeText = async (text) => void window.copied.push(text);
  });
  if (hasClock) await page.clock.install();
  await page.goto(url + "/" + hash);
  page.on("request", (request) => new URL(request.url()).origin === url || page.wrong.push(`asks ${request.url()}`));
  page.finish = async () => {
    assert.deepEqual(page.wrong, []);
    assert.equal(await page.evaluate(() => window.ran), undefined, "injected markup ran");
    await context.close();
  };
  page.seen = (selector, text) => page.locator(selector).filter({ hasText: text, visible: true }).first().waitFor();
  page.card = (name) => page.locator(".card").filter({ has: page.locator(".name", { hasText: name }) }).last();
  page.unfold = (name) => page.card(name).locator("summary").click();
  page.ask = async (text) => {
    await page.fill("#text", text);
    await page.press("#text", "Enter");
  };
  return page;
}

/** A page on which somebody has asked, and the turn of the model. */
async function ask(question) {
  const page = await open();
  await live(page);
  await page.ask(question);
  return { page, turn: await model.next() };
}

const state = (page, name, word) => page.card(name).locator(`.state`).filter({ hasText: word }).waitFor();
const openAll = async (page) => { for (const card of await page.locator(".card").all()) if ((await card.getAttribute("open")) === null) await card.locator("summary").click(); };
const live = (page) => page.seen("#link", "live");

const CHECKS = {
  async "the policy of the document lets only its own script and style run"() {
    const answer = await fetch(service.url + "/");
    const html = await answer.text();
    const hash = (tag) => createHash("sha256").update(html.match(new RegExp(`<${tag}>([^]*?)</${tag}>`))[1]).digest("base64");
    assert.equal(answer.headers.get("content-security-policy"), `default-src 'none'; script-src 'sha256-${hash("script")}'; style-src 'sha256-${hash("style")}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`);
    assert.ok(!/https?:|url\(|@import|<link|src=/.test(html.replace("http://www.w3.org/2000/svg", "")), "something is loaded from elsewhere");
    console.log(`  ${Buffer.byteLength(html)} bytes`);
  },

  async "a question is asked in the background, and its answer streams"() {
    const { page, turn } = await ask("How high is it?");
    assert.equal(turn.request.messages.at(-1).content, "How high is it?");
    await page.seen("#list .mark", "running");
    turn.send({ reasoning_content: "It is a " });
    await page.seen(".text[data-voice=thinking]", "It is a");
    turn.send({ reasoning_content: "hill." });
    await page.seen(".text[data-voice=thinking]", "It is a hill.");
    turn.text("It is **2,962");
    await page.seen(".text[data-voice=answer]", "It is **2,962");
    // A page that is loaded again in the middle has all of it, and cancels nothing.
    await page.reload();
    await page.seen(".text[data-voice=answer]", "It is **2,962");
    turn.text(" m** high. Run:\n```sh\nls <b>\n\n- ls\n``");
    await page.seen(".text strong", "2,962 m");
    turn.text("`\nThen:\n- one\n- two\n\n\n# Three");
    await page.seen(".text .heading", "Three");
    assert.deepEqual(await page.locator(".text[data-voice=answer] > div > *").allTextContents(), ["It is 2,962 m high. Run:", "ls <b>\n\n- ls", "Then:", "onetwo", "Three"]);
    turn.end();
    await page.seen(".answer", "completed");
    await page.locator("#stop").waitFor({ state: "hidden" });
    await page.ask("And now?");
    const second = await model.next();
    assert.equal(second.request.messages.length, 3, "it goes on in the same session");
    second.says("Still.");
    await page.seen(".text", "Still.");
    assert.equal(await page.locator("#list li").count(), 1);
    await page.finish();
  },

  async "arguments grow with a count of their bytes, and a result comes into the card, which keeps the focus"() {
    const { page, turn } = await ask("Look.");
    turn.call("c1", "look", '{"q": "ü');
    await state(page, "look", "arriving");
    await page.card("look").locator(".figure", { hasText: /^8 B$/ }).waitFor();
    await page.card("look").locator("summary").press("Enter");
    turn.call(undefined, undefined, 'ber"');
    await page.card("look").locator(".figure", { hasText: /^1[0-9] B$/ }).waitFor();
    await page.seen(".card pre", '{"q":"über');
    turn.calls(undefined, undefined, ', "n": 12345678901234567890}');
    await state(page, "look", "done");
    await page.seen(".card pre", "found über");
    await page.seen(".card pre", '"n": 12345678901234567890');
    assert.match(await page.card("look").locator(".figure").textContent(), /ms|s/);
    assert.ok(await page.evaluate(() => document.activeElement.matches(".card[open] > summary")), "the focus is lost");
    const next = await model.next();
    next.calls("c2", "fail", "{}");
    await state(page, "fail", "error");
    await page.card("fail").locator(".figure", { hasText: "exit 3" }).waitFor();
    const last = await model.next();
    last.says("Done.");
    await page.seen(".answer", "completed");
    await page.click("text=Timeline");
    await page.seen(".timeline th", "turn 3");
    await page.seen(".timeline .word", "error");
    await page.locator(".timeline button", { hasText: "look" }).press("Enter");
    await page.seen(".card[open] pre", "found über");
    await page.finish();
  },

  async "a call that waits shows all that is approved, also after a reload, and runs once"() {
    const { page, turn } = await ask("Change it.");
    turn.calls("c1", "change", `{"q": "${"long ".repeat(300)}end", "n": 98765432109876543210}`);
    await state(page, "change", "waits for approval");
    await page.seen("#list .mark", "a call waits");
    await page.reload();
    await state(page, "change", "waits for approval");
    const shown = await page.card("change").locator("dd:visible").allTextContents();
    const { pending } = (await (await fetch(`${service.url}/v1/sessions`)).json()).data[0];
    assert.match(shown[0], /long end".*\n.*98765432109876543210/);
    assert.match(shown[1], /class write/);
    assert.equal(shown[2], pending[0].hash);
    await page.getByRole("button", { name: "Approve change" }).click();
    await state(page, "change", "done");
    await page.seen(".note", "change: approved by client");
    const next = await model.next();
    next.says("It is changed.");
    await page.seen(".text", "It is changed.");
    assert.equal(readFileSync(join(folder, "changed"), "utf8").trim().split("\n").length, 1);
    await page.finish();
  },

  async "a denied call does not run, and the model reads the word that goes with it"() {
    const { page, turn } = await ask("Change it again.");
    turn.calls("c1", "change", '{"q": "denied"}');
    await page.getByRole("textbox", { name: "A word to the model about change" }).fill("Too many.");
    await page.getByRole("button", { name: "Deny change" }).click();
    await state(page, "change", "denied");
    const next = await model.next();
    assert.ok(next.request.messages.some((message) => message.role === "user" && message.content === "Too many."));
    assert.match(next.request.messages.find((message) => message.role === "tool").content, /refused|denied/i);
    next.end();
    assert.ok(!readFileSync(join(folder, "changed"), "utf8").includes("denied"));
    await page.finish();
  },

  async "a second answer to a call is refused with the first"() {
    const { page, turn } = await ask("Change it.");
    turn.calls("c1", "change", '{"q": "twice"}');
    await state(page, "change", "waits for approval");
    // Somebody else is faster.
    await page.route("**/approve", async (route) => {
      await fetch(route.request().url().replace("approve", "deny"), { method: "POST", headers: { "content-type": "application/json" }, body: route.request().postData() });
      await route.continue();
    });
    const refused = page.waitForResponse((response) => response.url().endsWith("/approve"));
    await page.getByRole("button", { name: "Approve change" }).click();
    assert.equal((await refused).status(), 409);
    await state(page, "change", "denied");
    (await model.next()).end();
    await page.finish();
  },

  async "stop ends the answer, and closing the page does not"() {
    const { page, turn } = await ask("Write for ever.");
    turn.text("For ever");
    await page.seen(".text", "For ever");
    await page.click("#stop");
    await turn.closed;
    await page.seen(".note", "cancelled by client");
    await page.seen(".answer", "cancelled");
    await page.ask("Write on.");
    const second = await model.next();
    second.text("First half,");
    await page.seen(".text", "First half,");
    const { hash } = new URL(page.url());
    await page.finish();
    second.says(" second half.");
    const again = await open(hash);
    await again.seen(".text", "First half, second half.");
    await again.seen(".answer", "completed");
    await again.finish();
  },

  async "a call that runs is cancelled alone, and what is said meanwhile is read in the next turn"() {
    const { page, turn } = await ask("Wait.");
    turn.calls("c1", "block", "{}");
    await state(page, "block", "running");
    await page.unfold("block");
    await page.seen(".card pre", "begun");
    await page.ask("Hurry up.");
    await page.seen("#note", "next turn");
    // A page that is loaded again in the middle of a call goes on with it.
    await page.reload();
    await state(page, "block", "running");
    await page.unfold("block");
    await page.seen(".card pre", "begun");
    const cancel = page.getByRole("button", { name: "Cancel call block" });
    await cancel.press("Enter");
    await state(page, "block", "cancelled");
    await cancel.waitFor({ state: "detached" });
    assert.ok(await page.evaluate(() => document.activeElement.matches("summary")), "the focus is lost with the button");
    const next = await model.next();
    assert.ok(next.request.messages.some((message) => message.role === "user" && message.content === "Hurry up."));
    next.says("Hurrying.");
    await page.seen(".text[data-voice=user]", "Hurry up.");
    await page.seen(".answer", "completed");
    await page.finish();
  },

  async "states that only some tools have: progress, repair, cache, text, refusal, take-back, no result"() {
    const call = (id, more) => ({ type: "tool_call", index: 0, tool_id: id, tool_name: id, arguments: { a: 1 }, commit: "final", ...more });
    const result = (id, status, more) => ({ type: "tool_result", tool_id: id, tool_name: id, status, output: `${id} output`, timestamp: START + 9000, ...more });
    const made = session([
      user("All states"), begin("r1"), { type: "stream_start", v: 1, model: "m1", t: 0 },
      { type: "refusal_delta", text: "I will not." }, { type: "content_delta", text: "But" },
      { type: "tool_call_delta", index: 0, tool_id: "texted", tool_name: "texted", arguments: "{}", from_text: true }, call("texted", { repairs: [{ offset: 0 }], arguments_text: "{" }),
      call("broken", { arguments: null, arguments_text: "{", error: { code: "invalid_json", message: "not JSON" } }), call("stored"), call("taken"), call("moving"), call("late"), call("unknown"),
      { type: "retract", tool_id: "taken", reason: "stream_failed" },
      { type: "tool_use", tool_id: "moving", tool_name: "moving", status: "running", timestamp: START + 10 }, { type: "tool_progress", tool_id: "moving", tool_name: "moving", progress: 0.4, text: "packing" },
      result("texted", "success", { duration_ms: 1234 }), result("stored", "success", { cached: true, truncated: true, output_bytes: 123456 }), result("late", "timeout"), result("unknown", "unknown_tool"),
      { type: "warning", source: "tool-exec", code: "w", message: "careful" }, { type: "error", source: "llm-stream", code: "e", message: "broken" },
    ]);
    const page = await open("#" + made.id);
    const word = async (name, state, figure) => {
      assert.match(await page.card(name).locator(".state").textContent(), state);
      if (figure) assert.match(await page.card(name).locator(".figure").textContent(), figure);
    };
    await state(page, "moving", "running");
    await word("texted", /done/, /from text, repaired, 1\.2 s/);
    await word("broken", /refused: invalid_json/);
    await word("stored", /done/, /cached/);
    await word("taken", /taken back/);
    await word("moving", /running/, /^40 % · packing, \d+ min \d+ s$/);
    await word("late", /timeout/);
    await word("unknown", /unknown tool/);
    await page.unfold("stored");
    await page.seen(".card pre", "it had 123.5 kB");
    await page.seen(".text[data-voice=refusal]", "I will not.");
    await page.seen(".note[data-tone=error]", "llm-stream: broken (e)");
    made.write({ type: "tool_progress", tool_id: "moving", tool_name: "moving", progress: 0.9, text: "sealing" });
    await page.card("moving").locator(".figure", { hasText: "90 % · sealing" }).waitFor();
    made.write({ type: "response_end", id: "r1", status: "interrupted", timestamp: START + 20000 });
    await state(page, "moving", "no result");
    await page.finish();
  },

  async "a hidden tab closes its stream, and has all when it is shown"() {
    const made = session([user("Hidden"), begin("r1"), { type: "content_delta", text: "before" }]);
    const page = await open("#" + made.id);
    await page.seen(".text", "before");
    await live(page);
    const closed = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/sessions/events"));
    const hide = (is) => page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { value: is, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, is);
    await hide(true);
    await closed;
    await page.seen("#link", "paused");
    made.write({ type: "content_delta", text: ", meanwhile" });
    const other = session([user("Begun meanwhile")]);
    await hide(false);
    await page.seen(".text", "before, meanwhile");
    await page.seen("#list a", "Begun meanwhile");
    made.write({ type: "content_delta", text: ", after" });
    await page.seen(".text", "before, meanwhile, after");
    rmSync(other.file);
    await page.locator("#list a", { hasText: "Begun meanwhile" }).waitFor({ state: "detached" });
    await page.finish();
  },

  async "a page whose machine slept follows again, since it cannot know whether its connection lives"() {
    const made = session([user("Sleep"), begin("r1"), { type: "content_delta", text: "before" }]);
    const page = await open("#" + made.id, { hasClock: true });
    await page.seen(".text", "before");
    await live(page);
    const again = page.waitForRequest((request) => request.url().endsWith("/v1/sessions/events"));
    await page.clock.fastForward("10:00");
    await again;
    made.write({ type: "content_delta", text: ", after" });
    await page.seen(".text", "before, after");
    await live(page);
    await page.finish();
  },

  async "a lost network is noticed, and nothing of what was written meanwhile is missing"() {
    const made = session([user("Network"), begin("r1"), { type: "content_delta", text: "before" }]);
    const network = new Network();
    const page = await open("#" + made.id, { url: `http://127.0.0.1:${await listen(network.server)}`, hasClock: true });
    await page.seen(".text", "before");
    await live(page);
    // Nothing passes, and nothing is closed.
    network.silence();
    made.write({ type: "content_delta", text: ", silence" });
    // The browser may have more connections that are lost, and tries one after the other.
    for (const text = page.locator(".text", { hasText: "before, silence" }); !(await text.isVisible()); await delay(500)) await page.clock.fastForward("01:10");
    await live(page);
    // Nothing can be reached, until the browser says that it can.
    await page.context().setOffline(true);
    network.cut();
    await page.seen("#link", "offline, tries again");
    made.write({ type: "content_delta", text: ", cut" });
    await page.context().setOffline(false);
    await page.seen(".text", "before, silence, cut");
    await live(page);
    network.cut();
    network.server.close();
    await page.finish();
  },

  async "the list names an answer that a killed service has left, until somebody opens the session"() {
    // A service with tools ends such answers when it starts.
    const plain = ["--base-url", `http://127.0.0.1:${model.server.address().port}`, "--sessions", join(folder, "plain")];
    let own = await serve(binaries, plain);
    const page = await open("", { url: own.url });
    await live(page);
    await page.ask("Left alone");
    (await model.next()).text("Half an");
    await page.seen(".text", "Half an");
    await page.click("#new");
    await page.seen("#list .mark", "running");
    await own.stop();
    own = await serve(binaries, plain, own);
    await page.seen("#list .mark", "interrupted");
    await page.click("#list a");
    await page.seen(".answer", "interrupted");
    await page.locator("#list .mark", { hasText: /^$/ }).waitFor({ state: "attached" });
    await page.finish();
    await own.stop();
  },

  async "a service that is killed and started again is followed again, and its answer ends"() {
    const { page, turn } = await ask("Before the crash");
    turn.text("Half an");
    await page.seen(".text", "Half an");
    await service.stop();
    await page.seen("#link", "offline");
    assert.ok(await page.locator(".text", { hasText: "Half an" }).isVisible(), "what was there stays");
    service = await serve(binaries, options(), service);
    await live(page);
    await page.seen(".answer", "interrupted");
    await page.locator("#stop").waitFor({ state: "hidden" });
    await page.ask("After the crash");
    const next = await model.next();
    next.says("All of it.");
    await page.seen(".text", "All of it.");
    assert.equal(await page.locator(".text[data-voice=answer]").count(), 2);
    await page.finish();
  },

  async "markup in every field is text"() {
    const bad = { tool_id: BAD, tool_name: BAD };
    const made = session([
      { type: "session", metadata: { [BAD]: BAD } }, user(BAD), { ...begin("r"), id: BAD, front: BAD, model: BAD }, { type: "request", model: BAD, params: { [BAD]: BAD } },
      { type: "stream_start", v: 1, t: 0, model: BAD, id: BAD, api: BAD }, { type: "thinking", text: BAD }, { type: "refusal_delta", text: BAD },
      { type: "content_delta", text: `${BAD}\n\n# ${BAD}\n- ${BAD}\n\n\`\`\`${BAD}\n${BAD}\n\`\`\`\n\n**${BAD}** \`${BAD}\` [${BAD}](javascript:window.ran=1) ![x](http://127.0.0.1:1/x.png) <http://127.0.0.1:1/>\u202e\u0007` },
      { type: "tool_call_delta", index: 0, ...bad, arguments: `{"${BAD.replaceAll('"', '\\"')}": 1` }, { type: "tool_call", ...bad, index: 0, arguments: { [BAD]: BAD } },
      { type: "tool_use", ...bad, timestamp: START, input_summary: BAD }, { type: "tool_progress", ...bad, progress: 0.5, text: BAD },
      { type: "tool_result", ...bad, status: BAD, output: BAD, output_summary: BAD, hash: BAD, timestamp: START + 1 },
      { type: "tool_call", tool_id: "e", tool_name: BAD, error: { code: BAD, message: BAD }, arguments: null, arguments_text: BAD },
      { type: "tool_call", tool_id: "p/../..", tool_name: `p${BAD}`, arguments: { [BAD]: BAD } }, { type: "tool_result", tool_id: "p/../..", tool_name: `p${BAD}`, status: "pending", output: BAD, hash: BAD, timestamp: START },
      { type: "approval", ...bad, decision: BAD, by: BAD, source: BAD }, { type: "warning", source: BAD, code: BAD, message: BAD }, { type: "error", source: BAD, code: BAD, message: BAD },
      { type: "server_item", kind: BAD, data: BAD }, { type: "cancel", tool_id: BAD, by: BAD }, { type: "retract", ...bad, reason: BAD }, { type: "session_stats", prompt_tokens: 1, completion_tokens: 1 },
      { type: "content_delta", stream: BAD, text: BAD }, { type: BAD, x: BAD }, { type: "__proto__", text: BAD }, BAD, "[]", "null", '{"type":"content_delta","text":7}', '{"type":"message","message":null}', '{"type":"message","message":{"role":"assistant","content":[null,7,{"text":[]}],"tool_calls":[null,{"function":null}]}}',
      '{"type":"tool_call","tool_id":{},"tool_name":[],"error":"x","repairs":7}', '{"type":"tool_result","tool_id":"z","duration_ms":"x","exit_code":[]}', '{"type":"stream_end","finish_reason":"toString"}', '{"type":"constructor"}',
      { type: "response_end", id: BAD, status: BAD }, { ...begin(BAD), model: BAD }, { type: "request", model: BAD, tools: BAD, params: { [BAD]: BAD } }, user(BAD),
    ]);
    const page = await open("#" + made.id);
    await page.seen(".note", "run by the provider");
    await openAll(page);
    assert.equal(await page.locator("#app :is(img, script, iframe, object, link, style, base), #talk a").count(), 0);
    assert.ok((await page.locator(".card .name").first().textContent()).includes("<img src=x"));
    assert.ok((await page.locator("#title").textContent()).includes("<script>"));
    assert.ok((await page.locator("#talk").textContent()).includes("\\u202e"), "hidden characters are written out");
    for (const button of await page.locator(".answer button").all()) await button.click();
    const commands = await page.evaluate(() => window.copied);
    assert.equal(commands.length, 1);
    execFileSync("bash", ["-nc", commands[0]]);
    for (const button of await page.locator(".acts button").all()) await button.click();
    await page.locator(".acts .error").filter({ hasText: /./ }).first().waitFor();
    await page.click("text=Timeline");
    await page.seen(".timeline th", "turn 1");
    await page.click("text=Events");
    await page.seen("#room", "content_delta");
    for (let n = 0; n < 45; n++) await page.press("#lines", "ArrowDown");
    made.write({ type: "content_delta", text: "live" }, BAD, { type: "tool_progress", ...bad, text: BAD });
    await page.click("text=Conversation");
    await page.seen(".text", "live");
    await page.goto(`${service.url}/?delete=1&x=${encodeURIComponent(BAD)}#${encodeURIComponent(BAD)}`);
    await live(page);
    await page.goto(`${service.url}/#key=${encodeURIComponent(BAD)}`);
    await page.reload();
    await page.finish();
  },

  async "a copied command asks the same, and has the key as a variable"() {
    const page = await open();
    await live(page);
    const question = `It's "quoted" $HOME \`id\` \\ and\nbroken`;
    await page.ask("x");
    const first = await model.next();
    first.says("First.");
    await page.seen(".answer", "completed");
    await page.ask(question);
    const turn = await model.next();
    turn.says("Yes.");
    await page.locator(".answer", { hasText: "completed" }).nth(1).waitFor();
    await page.locator(".answer button").last().click();
    const [command] = await page.evaluate(() => window.copied);
    const asked = model.next();
    const ran = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "ignore"] });
    const again = await asked;
    again.says("Again.");
    let body = "";
    for await (const piece of ran.stdout) body += piece;
    assert.deepEqual(again.request.messages, turn.request.messages);
    assert.equal(JSON.parse(body).output.at(-1).content[0].text, "Again.");
    await page.click("text=Events");
    await page.click("#follow");
    assert.match((await page.evaluate(() => window.copied)).at(-1), /^curl -N 'http.*live=ndjson'$/);
    // The session does not keep the whole request of any other front.
    await page.goto(`${service.url}/#${session([user("Other"), { ...begin("r1"), front: "anthropic" }]).id}`);
    await page.seen(".answer", "anthropic");
    assert.equal(await page.locator(".answer button").count(), 0);
    await page.finish();
  },

  async "a key is asked for or comes in the fragment, and is in no address afterwards"() {
    const file = join(folder, "keys");
    writeFileSync(file, "a-key-of-sixteen-letters\n");
    const own = await serve(binaries, [...options(), "--key-file", file]);
    const page = await open("", { url: own.url });
    await page.fill("#key", "wrong-wrong-wrong-wrong");
    await page.press("#key", "Enter");
    await page.seen("#refused", "does not know this key");
    await page.fill("#key", "a-key-of-sixteen-letters");
    await page.click("#door button");
    await live(page);
    await page.seen("#example", "Bearer $KEY");
    assert.ok(!(await page.content()).includes("a-key-of"));
    await page.finish();
    const other = await open("#key=a-key-of-sixteen-letters", { url: own.url });
    await live(other);
    assert.ok(!other.url().includes("key"));
    assert.deepEqual(await other.context().cookies(), []);
    await other.finish();
    await own.stop();
  },

  async "the keyboard reaches everything, and a screen reader gets what has come in pieces"() {
    const [one, two] = [session([user("Keys one")]), session([user("Keys two"), begin("r1"), { type: "stream_start", v: 1, t: 0 }])];
    const page = await open();
    await page.seen("#list a", "Keys two");
    await page.locator("#list a", { hasText: "Keys two" }).focus();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.seen("#title", "Keys one");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.seen("#title", "Keys two");
    assert.equal(await page.getByRole("log").count(), 1);
    two.write({ type: "content_delta", text: "Words that are read out." }, { type: "stream_end", finish_reason: "stop" });
    await page.locator("#say", { hasText: "Words that are read out." }).waitFor({ state: "attached" });
    const reached = new Set();
    await page.locator("#new").focus();
    for (let n = 0; n < 40; n++) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
    }
    for (const name of ["Conversation", "Timeline", "Events", "delete", "pane", "text", "model", "Send", "stop"]) assert.ok(reached.has(name), `${name}: Tab does not reach it (${[...reached]})`);
    rmSync(one.file);
    await page.finish();
  },

  async "a session is deleted after a question"() {
    const made = session([user("To be deleted")]);
    const page = await open("#" + made.id);
    await page.seen("#title", "To be deleted");
    await page.click("#delete");
    await page.locator("#dialog").getByRole("button", { name: "Cancel" }).click();
    assert.ok(existsSync(made.file));
    await page.click("#delete");
    await page.click("#dialog-yes");
    await page.seen("#title", "New session");
    assert.ok(!existsSync(made.file));
    await page.finish();
  },

  async "ten thousand events are in the page, and few nodes in the document"() {
    const events = [user("Long")];
    for (let n = 0; n < 5000; n++) events.push({ type: "tool_result", tool_id: `c${n}`, tool_name: `tool${n}`, status: "success", output: "x" }, { type: "content_delta", text: `answer ${n}` });
    const made = session(events);
    const page = await open("#" + made.id);
    await page.seen(".text", "answer 4999");
    assert.ok((await page.locator("#talk > *").count()) <= 400);
    await page.click("#earlier");
    await page.locator(".text").filter({ hasText: "answer 4750" }).waitFor();
    assert.ok((await page.locator("#talk > *").count()) <= 400);
    await page.click("#latest");
    await page.seen(".text", "answer 4999");
    await page.click("text=Events");
    await page.seen("#count", "10002 of 10002 events");
    assert.ok((await page.locator("#room > *").count()) < 60);
    await page.fill("#filter", "answer 123");
    await page.seen("#count", "11 of 10002");
    await page.press("#lines", "End");
    await page.seen("#line", "answer 1239");
    await page.finish();
  },

  async "the end is followed until a card above it is opened or somebody scrolls up"() {
    const call = (n) => ({ type: "tool_result", tool_id: `f${n}`, tool_name: `follow${n}`, status: "success", output: "line\n".repeat(60) });
    const made = session([user("Follow"), begin("r1"), ...Array.from({ length: 40 }, (_, n) => call(n))]);
    const page = await open("#" + made.id);
    const below = () => page.locator("#pane").evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight);
    const more = async (text) => {
      made.write({ type: "content_delta", text: `${text}\n\n`.repeat(30) }, { type: "content_delta", text: `end of ${text}\n\n` });
      await page.seen(".text", `end of ${text}`);
    };
    await state(page, "follow39", "done");
    await more("one");
    assert.ok((await below()) < 2);
    await page.locator("#pane").hover();
    await page.mouse.wheel(0, -300);
    await page.locator("#latest").waitFor();
    await more("two");
    assert.ok((await below()) > 300);
    await page.click("#latest");
    await page.locator("#latest").waitFor({ state: "hidden" });
    assert.ok((await below()) < 2);
    made.write(call(40));
    await state(page, "follow40", "done");
    await page.unfold("follow40");
    await page.seen(".card[open] pre", "line");
    const before = await below();
    await more("three");
    assert.ok((await below()) > before, "the card that is read is scrolled away");
    await page.finish();
  },

  async "axe finds nothing at 400, 900 and 1600 pixels, dark and light"() {
    const made = session([
      user("We are four."), begin("r1"), { type: "stream_start", v: 1, t: 0, model: "m1" }, { type: "thinking", text: "Hm." }, { type: "content_delta", text: "# Huts\n\n1. **one** `code`\n\n```\npre\n```" },
      ...["done", "waits", "fails", "runs"].map((id, n) => ({ type: "tool_call", index: n, tool_id: id, tool_name: id, arguments: { day: "saturday" } })),
      { type: "tool_use", tool_id: "done", tool_name: "done", timestamp: START, t: 100 }, { type: "tool_result", tool_id: "done", tool_name: "done", status: "success", output: "ok", duration_ms: 300, timestamp: START + 300 },
      { type: "tool_result", tool_id: "waits", tool_name: "waits", status: "pending", output: "The tool is of class write.", hash: "abc", timestamp: START + 400 },
      { type: "tool_result", tool_id: "fails", tool_name: "fails", status: "error", output: "no", exit_code: 1, timestamp: START + 500 }, { type: "tool_use", tool_id: "runs", tool_name: "runs", timestamp: START + 600 },
      { type: "warning", source: "x", code: "y", message: "careful" }, { type: "error", source: "x", code: "y", message: "broken" },
    ]);
    const found = [];
    for (const width of [400, 900, 1600]) for (const colorScheme of ["light", "dark"]) {
      // The policy would keep axe out.
      const page = await open("", { width, colorScheme, bypassCSP: true });
      const look = async (what) => {
        for (const violation of await violations(page)) found.push(`${what}, ${width} px, ${colorScheme}: ${violation}`);
      };
      await live(page);
      await look("list");
      await page.goto(`${service.url}/#${made.id}`);
      await state(page, "runs", "running");
      await openAll(page);
      await look("conversation");
      await page.click("text=Timeline");
      await look("timeline");
      await page.click("text=Events");
      await page.press("#lines", "ArrowDown");
      await look("events");
      await page.click("#delete");
      await look("dialog");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px: the page is wider`);
      await page.finish();
    }
    assert.deepEqual(found, []);
  },
};

// ---- How fast it is: 50 events a second for a minute, in a session of 10,000 events

async function speed() {
  const events = [user("Long"), begin("r1"), { type: "stream_start", v: 1, t: 0, model: "m1" }];
  for (let n = 0; n < 2500; n++) {
    const call = { tool_id: `c${n}`, tool_name: `tool${n}` };
    events.push({ type: "tool_call", index: 0, ...call, arguments: { n } }, { type: "tool_use", ...call, timestamp: START + n }, { type: "tool_result", ...call, status: "success", output: `line ${n}\n`.repeat(20), timestamp: START + n + 1 }, { type: "content_delta", text: `Paragraph ${n} with **some** words.\n\n` });
  }
  const made = session(events);
  const page = await open();
  await live(page);
  const began = Date.now();
  await page.evaluate((hash) => (location.hash = hash), made.id);
  await page.seen(".text", "Paragraph 2499");
  const opened = Date.now() - began;
  await page.evaluate(() => {
    const seen = (window.seen = new Map());
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "long-animation-frame" });
    let [words, cards] = [-1, -1];
    // Behind the frame that shows it.
    const note = (name) => requestAnimationFrame(() => setTimeout(() => seen.set(name, Date.now())));
    new MutationObserver(() => {
      const talk = document.getElementById("talk");
      const last = [...talk.querySelectorAll(":scope > .text")].at(-1)?.lastElementChild?.textContent ?? "";
      for (const [, n] of last.matchAll(/w(\d+)/g)) if (n > words) note(`w${(words = Number(n))}`);
      for (const name of [...talk.querySelectorAll(":scope > .card .name")].slice(-3)) {
        const n = Number(/^k(\d+)/.exec(name.textContent)?.[1] ?? -1);
        if (n > cards) note(`k${(cards = n)}`);
      }
    }).observe(document.getElementById("talk"), { childList: true, characterData: true, subtree: true });
  });
  const written = new Map();
  const seconds = Number(process.env.SECONDS_LONG ?? 60);
  for (let n = 0; n < 50 * seconds; n++) {
    const due = began + opened + 500 + n * 20;
    await delay(Math.max(0, due - Date.now()));
    const name = n % 50 === 49 ? `k${n}` : `w${n}`;
    made.write(n % 50 === 49 ? { type: "tool_call", index: 0, tool_id: name, tool_name: name, arguments: { n } } : { type: "content_delta", text: `${name} ${n % 25 === 0 ? "\n\n" : ""}` });
    written.set(name, Date.now());
  }
  await page.seen(".card .name", `k${50 * seconds - 1}`);
  const { seen, long } = await page.evaluate(() => ({ seen: [...window.seen], long: window.long }));
  const late = (letter) => seen.filter(([name]) => name[0] === letter).map(([name, at]) => at - written.get(name)).sort((a, b) => a - b);
  const quantile = (all, part) => all[Math.min(all.length - 1, Math.floor(all.length * part))];
  for (const [letter, what] of [["w", "an update"], ["k", "a card"]]) {
    const all = late(letter);
    console.log(`speed: from the event in the file to ${what} on the screen: p50 ${quantile(all, 0.5)} ms, p99 ${quantile(all, 0.99)} ms, most ${all.at(-1)} ms (${all.length} of ${[...written.keys()].filter((name) => name[0] === letter).length})`);
  }
  console.log(`speed: ${long.filter((ms) => ms > 50).length} frames over 50 ms in ${seconds} s, the longest ${Math.round(Math.max(0, ...long))} ms; a session of ${events.length} events, ${readFileSync(made.file).length} bytes, is open after ${opened} ms`);
  await page.finish();
}

// ---- All checks, one after the other

const options = () => ["--base-url", `http://127.0.0.1:${model.server.address().port}`, "--sessions", sessions, "--tools", join(folder, "tools.json"), "--mode", "standard", "--ask", "write"];

makeTools();
mkdirSync(sessions, { mode: 0o700 });
model = new Model();
await listen(model.server);
service = await serve(binaries, options());
browser = await browse();
const failed = named[0] === "--speed" ? await speed() : await check(CHECKS, named, async () => {
  // A check that has failed leaves nothing to the next.
  model.asked.length = model.waiting.length = 0;
  for (const context of browser.contexts()) await context.close();
});
await browser.close();
process.exit(failed ? 1 : 0);
