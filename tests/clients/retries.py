#!/usr/bin/env python3
"""Counts how often a provider is asked for one call of an official client, directly and through tc-serve, by what the provider does.

usage: retries.py BIN

Each client retries as it does without settings. Through tc-serve the provider may be asked once more than the client asks by itself. Exits 1 when
it is asked more often, or when a client raises nothing.
"""
import http.server, json, os, re, subprocess, sys, threading
import anthropic, openai
from servers import NODE, here, installed

# The connection ends without an answer, or the answer has this status and asks for a short wait.
FAILURES = ["lost", 408, 429, 500, 501, 503, 400]
ASK = [{"role": "user", "content": "hi"}]


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    failure, asked = "lost", 0

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        Provider.asked += 1
        if Provider.failure == "lost":
            self.close_connection = True
            return
        body = b'{"error":{"message":"it fails","type":"broken"}}'
        self.send_response(Provider.failure)
        for name, value in {"content-type": "application/json", "retry-after-ms": "10", "content-length": len(body)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(404)
        self.send_header("content-length", 0)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that closes its connection is no error of the mock."""


def python_clients(base):
    chat = openai.OpenAI(base_url=base + "/v1", api_key="none")
    messages = anthropic.Anthropic(base_url=base, api_key="none")
    yield "openai-python chat", lambda: chat.chat.completions.create(model="m", messages=ASK)
    yield "openai-python chat, stream", lambda: list(chat.chat.completions.create(model="m", messages=ASK, stream=True))
    yield "openai-python responses", lambda: chat.responses.create(model="m", input="hi")
    yield "anthropic-python", lambda: messages.messages.create(model="m", messages=ASK, max_tokens=9)


def javascript_clients(base, node):
    def ask(name):
        node.stdin.write(json.dumps({"client": name, "base": base}) + "\n")
        node.stdin.flush()
        answer = json.loads(node.stdout.readline())
        if answer["error"]:
            raise RuntimeError(answer["error"])
    for name in ("openai", "anthropic", "ai-sdk"):
        yield f"{name}-javascript", lambda name=name: ask(name)


def asked(call):
    """How often the provider was asked for one call."""
    Provider.asked = 0
    try:
        call()
    except Exception:
        return Provider.asked
    sys.exit("retries: a client raised nothing")


def main():
    provider = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    direct = f"http://127.0.0.1:{provider.server_port}"
    server = subprocess.Popen(
        [os.path.join(sys.argv[1], "tc-serve"), "--listen", "127.0.0.1:0", "--base-url", direct],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    through = re.search(r"http://[\w.:]+", server.stdout.readline()).group(0)
    node = subprocess.Popen([NODE, os.path.join(here, "retries.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "CLIENTS": installed})
    wrong = 0
    try:
        print(f"{'upstream requests: directly > through tc-serve':48}" + "".join(f"{str(failure):>9}" for failure in FAILURES))
        clients = [[*python_clients(base), *javascript_clients(base, node)] for base in (direct, through)]
        for (name, alone), (_, served) in zip(*clients):
            cells = []
            for Provider.failure in FAILURES:
                by_itself, all_in_all = asked(alone), asked(served)
                wrong += all_in_all > by_itself + 1
                cells.append(f"{by_itself} > {all_in_all}")
            print(f"{name:48}" + "".join(f"{cell:>9}" for cell in cells), flush=True)
    finally:
        server.terminate()
        node.terminate()
    sys.exit(1 if wrong else 0)


main()
