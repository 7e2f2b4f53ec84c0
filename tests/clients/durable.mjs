// The read path of Durable Streams, by its own conformance tests and by its JavaScript client: durable.mjs BINARIES [TEST…]
//
// Its tests make streams by PUT and POST, which a service that only reads does not have. A small server before tc-serve does these two by
// writing session files as any program may, and hands everything else on as it is. It hides what a session has and a stream lacks: the first
// line, and the line feed that ends each append. For a stream of JSON it puts the lines into an array, as the protocol asks.
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { listen, scratch, serve, start } from "./harness.mjs";

const installed = process.env.CLIENTS;
const [binaries, ...named] = process.argv.slice(2);
const folder = scratch("durable");
const sessions = join(folder, "sessions");

// What is not of the read path: how streams are made, appended to, closed, forked and forgotten, subscriptions, and bytes that are not text.
// Stream-Seq and the producer headers belong to appending.
const NOT_READ = [
  "Basic Stream Operations", "Append Operations", "TTL", "Idempotent Producer", "Stream Closure", "Fork", "Subscription", "Webhook", "Sequence Ordering",
  "Concurrent Writer Stress Tests concurrent writers", "on PUT", "on POST", "on idempotent PUT", "PUT responses", "POST responses", "with seq", "seq ordering", "sequence ordering", "duplicate seq", "content-type mismatch",
  "idempotent create", "headers with different casing", "enforce content-type match", "empty POST", "empty array", "empty JSON arrays", "invalid JSON",
  "missing Content-Type", "without Content-Type", "Location header", "base64", "for binary streams", "Expires-At", "CORS", "application/x-protobuf", "glob",
];

const streams = new Map();
const isJson = (stream) => stream.type.toLowerCase().startsWith("application/json");

function append(stream, body) {
  const pieces = isJson(stream) ? [JSON.parse(body)].flat().map((message) => Buffer.from(JSON.stringify(message))) : [body];
  for (const piece of pieces.filter((piece) => piece.length > 0)) {
    appendFileSync(stream.file, Buffer.concat([piece, Buffer.from("\n")]));
    stream.end += piece.length + 1;
    // The line feed is not a byte of the stream.
    stream.feeds.add(stream.end - 1);
  }
}

function create(path, type, body) {
  const id = randomBytes(16).toString("hex");
  mkdirSync(join(sessions, id.slice(0, 2)), { recursive: true, mode: 0o700 });
  const file = join(sessions, id.slice(0, 2), `${id}.ndjson`);
  const head = `${JSON.stringify({ type: "session", v: 1, id, created: Date.now() })}\n`;
  writeFileSync(file, head, { mode: 0o600 });
  const stream = { id, file, type, head: head.length, end: head.length, feeds: new Set() };
  if (body.length > 0) append(stream, body);
  streams.set(path, stream);
  return stream;
}

// The offsets of the service, those before a stream's first byte aside.
function target(base, stream, url) {
  if (!stream) return `${base}/v1/sessions/${"0".repeat(32)}/events${url.search}`;
  const offsets = url.searchParams.getAll("offset");
  if (offsets.length === 0 && !url.searchParams.has("live")) url.searchParams.set("offset", String(stream.head));
  if (offsets.length === 1 && offsets[0] === "-1") url.searchParams.set("offset", String(stream.head));
  return `${base}/v1/sessions/${stream.id}/events${url.search}`;
}

// The bytes without the line feeds of appends, or the lines as an array.
function whole(stream, bytes, behind) {
  if (isJson(stream)) return `[${bytes.toString().split("\n").slice(0, -1).join(",")}]`;
  const first = behind - bytes.length;
  return Buffer.from(bytes.filter((_, at) => !stream.feeds.has(first + at)));
}

// An event of data as it is, or its lines as an array.
function shown(stream, event) {
  if (!isJson(stream) || !event.startsWith("event: data\n")) return event;
  const lines = event.split("\n").slice(1).map((line) => line.slice("data:".length)).filter((line) => line);
  return `event: data\n${`[${lines.join(",")}]`.split("\n").map((line) => `data:${line}`).join("\n")}`;
}

const adapter = (base) => createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const url = new URL(request.url, "http://localhost");
  const stream = streams.get(url.pathname);
  const offset = (stream) => ({ "stream-next-offset": String(stream.end).padStart(20, "0"), "content-type": stream.type });
  if (request.method === "PUT" || request.method === "POST") {
    if (request.method === "PUT" && !stream) response.writeHead(201, offset(create(url.pathname, request.headers["content-type"] ?? "application/octet-stream", body)));
    else if (!stream) response.writeHead(404);
    else if (request.method === "POST") { append(stream, body); response.writeHead(204, offset(stream)); }
    else response.writeHead(200, offset(stream));
    return response.end();
  }
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  try {
    if (request.method === "DELETE") {
      const answer = await fetch(`${base}/v1/sessions/${stream?.id ?? "0".repeat(32)}`, { method: "DELETE" });
      streams.delete(url.pathname);
      return response.writeHead(answer.status).end();
    }
    const headers = Object.fromEntries(["if-none-match", "accept"].filter((name) => request.headers[name]).map((name) => [name, request.headers[name]]));
    const answer = await fetch(target(base, stream, url), { method: request.method, headers, signal: gone.signal });
    const sent = Object.fromEntries([...answer.headers].filter(([name]) => !["content-length", "transfer-encoding", "connection"].includes(name)));
    const isEvents = sent["content-type"]?.startsWith("text/event-stream");
    if (answer.ok && !isEvents && sent["content-type"]) sent["content-type"] = stream.type;
    response.writeHead(answer.status, sent);
    if (!isEvents) {
      const bytes = Buffer.from(await answer.arrayBuffer());
      const has = answer.status === 200 && request.method === "GET";
      return response.end(has ? whole(stream, bytes, Number(sent["stream-next-offset"])) : bytes);
    }
    response.flushHeaders();
    let rest = "";
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + text).split("\n\n");
      rest = events.pop();
      for (const event of events) response.write(`${shown(stream, event)}\n\n`);
    }
    response.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  }
});

async function conformance(base) {
  const server = adapter(base);
  const port = await listen(server);
  const file = join(installed, "durable.test.mjs");
  writeFileSync(file, `import { runConformanceTests } from "@durable-streams/server-conformance-tests";\nrunConformanceTests({ baseUrl: process.env.CONFORMANCE_TEST_URL, longPollTimeoutMs: 4000 });\n`);
  const report = join(folder, "report.json");
  const pattern = named.length > 0 ? named.join("|") : `^(?!.*(?:${NOT_READ.join("|")}))`;
  const vitest = join(installed, "node_modules", "vitest", "vitest.mjs");
  const tests = start(process.execPath, [vitest, "run", "durable.test.mjs", "--root", installed, "-t", pattern, "--reporter=json", `--outputFile=${report}`], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, CONFORMANCE_TEST_URL: `http://127.0.0.1:${port}`, NODE_ENV: "test" },
  });
  await new Promise((resolve) => tests.on("close", resolve));
  server.closeAllConnections();
  server.close();
  const { numPassedTests, testResults } = JSON.parse(readFileSync(report));
  const all = testResults.flatMap((file) => file.assertionResults);
  const failed = all.filter((test) => test.status === "failed");
  for (const test of failed) console.log(`failed: ${test.fullName}\n  ${test.failureMessages.join("\n").slice(0, 600)}`);
  console.log(`durable streams: ${numPassedTests} tests of the read path pass, ${failed.length} fail, ${all.length - numPassedTests - failed.length} are not of the read path`);
  // A pattern that matches nothing must not pass.
  return failed.length === 0 && numPassedTests > (named.length > 0 ? 0 : 60);
}

// Its client follows a session that grows, in both ways that it has, and has the bytes of the file.
async function client(base) {
  const { stream } = await import(pathToFileURL(join(installed, "node_modules/@durable-streams/client/dist/index.js")));
  let isSame = true;
  for (const live of ["long-poll", "sse"]) {
    const made = create(`/${live}`, "application/x-ndjson", Buffer.alloc(0));
    const answer = await stream({ url: `${base}/v1/sessions/${made.id}/events`, offset: "-1", live });
    const lines = Array.from({ length: 50 }, (_, n) => `{"type":"content_delta","text":"é ${n}"}`);
    let got = "";
    const done = new Promise((resolve) => answer.subscribeText(async (chunk) => {
      got += chunk.text;
      // The next line is written once the one before it has come.
      const next = got.split("\n").length - 2;
      if (next >= lines.length) resolve();
      else append(made, Buffer.from(lines[next]));
    }));
    await done;
    answer.cancel();
    const same = got === readFileSync(made.file, "utf8");
    console.log(`durable streams: its client with ${live} has ${same ? "the bytes of the file" : `other bytes: ${got}`}`);
    isSame &&= same;
  }
  return isSame;
}

// No model is asked here.
const { url: base } = await serve(binaries, ["--sessions", sessions, "--base-url", "http://127.0.0.1:9", "--poll-time", "2s", "--max-connections", "4096"]);
const passes = [await conformance(base), await client(base)];
process.exit(passes.every((pass) => pass) ? 0 : 1);
