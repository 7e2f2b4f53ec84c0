"""A model with a script, as a server of OpenAI's chat completions. It reads a file with the tool of the agent that asks, writes what it read into
another file with the agent's tool, and answers. A scenario says how it writes its calls, and what goes wrong.

What the model does next follows from the conversation alone, as with any model: a request that comes twice gets the same answer twice.
"""
import json, re, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def in_javascript(command):
    return {"input": f"text((await tools.exec_command({json.dumps({'cmd': command})})).output)"}


# The tools with which agents read and write files: how each is called.
READ = {
    "exec": lambda path: in_javascript(f"cat {path}"),  # Codex: a program that calls its tools
    "Read": lambda path: {"file_path": path},  # Claude Code
    "read": lambda path: {"filePath": path},  # opencode
    "read_file": lambda path: {"path": path},  # loops.py and tools.py
}
WRITE = {
    "exec": lambda path, text: in_javascript(f"printf %s '{text}' >> {path}"),
    "Write": lambda path, text: {"file_path": path, "content": text},
    "write": lambda path, text: {"filePath": path, "content": text},
    "write_file": lambda path, text: {"path": path, "text": text},
}

# What each scenario is. `wire` is how calls are written; `fault` comes with the write, "once" or "always".
SCENARIOS = {
    "native calls": {},
    "calls as text": {"wire": "text"},
    "index always 0": {"wire": "index 0", "reads": 2},
    "reasoning first": {"wire": "reasoning"},
    "late arguments": {"wire": "late"},
    "breaks once": {"fault": "break", "times": 1},
    "breaks always": {"fault": "break", "times": 1000},
    "429 once": {"fault": "429", "times": 1},
    "429 always": {"fault": "429", "times": 1000},
    "silence": {"fault": "silence"},
}

WORD = re.compile(r"word-[0-9a-f]{8}")
ANSWER = "The copy is made."
LIMITED = {"error": {"message": "Too many requests for this model.", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}


class Model:
    """Serves one scenario in `folder` on a port of its own. `requests` is what it was asked: the kind of each request."""

    def __init__(self, scenario, folder, silence):
        self.scenario, self.folder, self.silence = SCENARIOS[scenario], folder, silence
        self.reads = [f"{folder}/{name}" for name in ("one.txt", "two.txt")[: self.scenario.get("reads", 1)]]
        self.target = f"{folder}/copy.txt"
        self.requests, self.bodies = [], []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        # A connection that tc-serve closes is not an error here.
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def turn(self, body):
        """The kind of the request, and the text and the calls of its answer. The kind is `other` for one without tools, such as that of a title."""
        tools = {tool["function"]["name"] for tool in body.get("tools") or []}
        read, write = (next((name for name in table if name in tools), None) for table in (READ, WRITE))
        if not read or not write:
            return "other", "A copy", []
        messages = body["messages"]
        called = json.dumps([message.get("tool_calls") for message in messages if message["role"] == "assistant"])
        results = json.dumps([message.get("content") for message in messages if message["role"] == "tool"])
        if self.target in called:
            return "answer", ANSWER, []
        words = list(dict.fromkeys(WORD.findall(results)))
        if words:
            return "write", "", [(write, WRITE[write](self.target, " ".join(words)))]
        return "read", "", [(read, READ[read](path)) for path in self.reads]


def chunks_of(text, calls, wire):
    """The deltas of an answer."""
    if wire == "reasoning":
        yield from ({"reasoning_content": piece} for piece in ("The file has ", "to be copied."))
    if wire == "text" and calls:
        text = "".join(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>\n" for name, arguments in calls)
    yield from ({"content": text[at : at + 7]} for at in range(0, len(text), 7))
    for position, (name, arguments) in enumerate(calls if wire != "text" else []):
        index = 0 if wire == "index 0" else position
        text = json.dumps(arguments)
        pieces = [text] if wire == "late" else [text[at : at + 9] for at in range(0, len(text), 9)]
        # Each answer counts its calls from 0, as some servers do.
        call = {"index": index, "id": f"call_{position}", "type": "function"}
        yield {"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]}
        yield from ({"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces)


def handler_of(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def whole(self, status, value, **headers):
            body = json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path.endswith("/models"):
                self.whole(200, {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}]})
            else:
                self.whole(404, {"error": {"message": "no such path", "code": 404}})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.endswith("/chat/completions"):
                return self.whole(404, {"error": {"message": "no such path", "code": 404}})
            kind, text, calls = model.turn(body)
            model.requests.append(kind)
            model.bodies.append(body)
            fault = model.scenario.get("fault")
            if kind != "write" or model.requests.count(kind) > model.scenario.get("times", 1000):
                fault = fault if (fault, kind) == ("silence", "read") else None
            if fault == "429":
                return self.whole(429, LIMITED, **{"retry-after": "1"})
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            if (fault, kind) == ("silence", "read"):
                time.sleep(model.silence)
            deltas = [{"role": "assistant", "content": None}, *chunks_of(text, calls, model.scenario.get("wire"))]
            for at, delta in enumerate(deltas):
                # Late arguments come with the finish reason.
                is_last = at + 1 == len(deltas) and model.scenario.get("wire") == "late"
                self.chunk(delta, self.reason(calls) if is_last else None)
                if at == 3 and (fault, kind) == ("silence", "write"):
                    time.sleep(model.silence)
            if fault == "break":
                # All of the call is there, but for its end: a client that ran it now would run it again after its next try.
                self.close_connection = True
                return
            if not is_last:
                self.chunk({}, self.reason(calls))
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            self.line({**self.head(), "choices": [], "usage": usage})
            self.piece(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def reason(self, calls):
            return "tool_calls" if calls and model.scenario.get("wire") != "text" else "stop"

        def head(self):
            return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}

        def chunk(self, delta, reason):
            self.line({**self.head(), "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        def line(self, value):
            self.piece(b"data: " + json.dumps(value).encode() + b"\n\n")

        def piece(self, data):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    return Handler
