// What one writes by hand in place of tc-accumulate: deltas merged by their index, read and checked with JSON.parse.

const streams = new Map();
let out = [];
let length = 0;

function write(line) {
  out.push(line, "\n");
  length += line.length;
  if (length > 65536) flush();
}

function flush() {
  process.stdout.write(out.join(""));
  out = [];
  length = 0;
}

function take(line) {
  const event = JSON.parse(line);
  const name = event.stream ?? "";
  if (event.type === "stream_start") streams.set(name, { content: [], calls: new Map() });
  const stream = streams.get(name);
  if (event.type === "content_delta") stream.content.push(event.text);
  if (event.type === "tool_call_delta") {
    const call = stream.calls.get(event.index) ?? { id: "", name: "", pieces: [] };
    stream.calls.set(event.index, call);
    call.id ||= event.tool_id ?? "";
    call.name ||= event.tool_name ?? "";
    if (event.arguments) call.pieces.push(event.arguments);
    return;
  }
  if (event.type === "stream_end") {
    const tool_calls = [];
    for (const [index, { id, name: tool_name, pieces }] of stream.calls) {
      const value = JSON.parse(pieces.join("") || "{}");
      write(JSON.stringify({ type: "tool_call", stream: event.stream, index, tool_id: id, tool_name, arguments: value }));
      tool_calls.push({ id, type: "function", function: { name: tool_name, arguments: JSON.stringify(value) } });
    }
    const message = { role: "assistant", content: stream.content.join(""), ...(tool_calls.length && { tool_calls }) };
    write(JSON.stringify({ type: "message", stream: event.stream, message }));
    streams.delete(name);
  }
  write(line);
}

process.stdin.setEncoding("utf8");
let rest = "";
for await (const chunk of process.stdin) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  lines.forEach(take);
}
flush();
