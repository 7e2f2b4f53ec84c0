#!/usr/bin/env python3
"""Puts tc-serve before mock providers that others publish, and asks it with the official Python clients.

usage: foreign.py BIN

The mocks are aimock (npm) and llmock (PyPI). Each speaks several APIs; for each of them the clients ask for a text, one call, two calls, and
answers that the mock breaks: a status, a connection that is lost, a stream without its end, a chunk that is not JSON. A broken answer has to
raise an error in every client, and a lost chunk must not break a call. Exits 1 when an answer is wrong.
"""
import json, os, subprocess, sys, time, urllib.request
from servers import NODE, PYTHON, here, installed, start_server

CALL = ["get_weather", {"city": "Paris"}]
OTHER = ["get_weather", {"city": "Rome \"Nuova\"\n"}]
TOOLS = [{"name": "get_weather", "description": "The weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]
# What the model of each name answers: a text and calls, or the statuses of an error of which one has to reach the client.
ANSWERS = {"text": ("Hello from afar.", []), "call": ("", [CALL]), "both": ("I look.", [CALL, OTHER])}
FAILED = {"limited": (429,), "broken": (500, 502), "malformed": None, "disconnect": None, "truncate": None}
APIS = {
    "aimock": {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": "", "gemini": "", "ollama": "", "cohere": ""},
    "llmock": {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": "/anthropic", "gemini": "/gemini/v1beta", "mistral": "/mistral/v1", "cohere": "/cohere"},
}
tool_calls = lambda *calls: [{"name": name, "arguments": arguments} for name, arguments in calls]
BEHAVIOURS = [
    {"type": "reply", "model": "text", "text": "Hello from afar."},
    {"type": "reply", "model": "call", "tool_calls": tool_calls(CALL)},
    {"type": "reply", "model": "both", "text": "I look.", "tool_calls": tool_calls(CALL, OTHER)},
    {"type": "fail", "model": "limited", "status": 429, "retry_after": 1},
    {"type": "fail", "model": "broken", "status": 500},
    *({"type": "stream_fault", "model": kind, "kind": kind, "after_chunks": 2} for kind in ("malformed", "disconnect", "truncate")),
]


def start_aimock():
    mock = subprocess.Popen([NODE, os.path.join(here, "foreign.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "CLIENTS": installed})
    return mock, mock.stdout.readline().strip()


def start_llmock():
    """llmock takes no port 0, so a free one is looked for first."""
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mock = subprocess.Popen([os.path.join(os.path.dirname(PYTHON), "llmock"), "serve", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    base, until = f"http://127.0.0.1:{port}", time.monotonic() + 30
    behaviours = [{**{k: v for k, v in b.items() if k != "model"}, "times": None, "match": {"model": f"{b['model']}*"}} for b in BEHAVIOURS]
    request = urllib.request.Request(base + "/_llmock/scenario", json.dumps({"behaviors": behaviours}).encode(), {"content-type": "application/json"})
    while True:
        try:
            urllib.request.urlopen(request, timeout=5).read()
            return mock, base
        except urllib.error.HTTPError as error:
            sys.exit(f"foreign: llmock takes no scenario: {error.read().decode()[:500]}")
        except OSError:
            if time.monotonic() > until:
                sys.exit("foreign: llmock does not start")
            time.sleep(0.1)


def is_broken(arguments):
    try:
        return not isinstance(json.loads(arguments), dict)
    except ValueError:
        return True


def wrong_with(model, result):
    error = result.get("error")
    if model in FAILED:
        # A chunk that cannot be read is lost, and the answer goes on without it (llm-stream warns): no call may be broken by that.
        if model == "malformed" and not error:
            whole = result["finish"] in ("stop", "completed", "end_turn", "tool_calls", "tool_use")
            return "a call without valid arguments" if whole and any(is_broken(c[2]) for c in result["calls"]) else None
        if not error:
            return f"an answer that ended with {result['finish']}, not an error"
        if FAILED[model] and error["status"] not in FAILED[model]:
            return f"status {error['status']}, not {FAILED[model]}: {error['message'][:150]}"
        return None
    if error:
        return f"raised {error['kind']} {error['status']}: {error['message'][:200]}"
    text, calls = ANSWERS[model]
    got = [[name, json.loads(arguments)] for _, name, arguments in result["calls"]]
    return None if (result["text"], got) == (text, calls) else f"{result['text']!r} {got}, not {text!r} {calls}"


def main():
    bad = total = 0
    for name, start in (("aimock", start_aimock), ("llmock", start_llmock)):
        mock, base = start()
        children = [mock]
        try:
            jobs = []
            for api, path in APIS[name].items():
                server, url = start_server(sys.argv[1], api, base + path, f"{name}-{api}")
                children.append(server)
                for model in (*ANSWERS, *FAILED):
                    if (name, model) == ("aimock", "truncate"):
                        continue
                    # llmock breaks a stream after its second chunk, and Gemini's calls come in one: a text has more.
                    tools = [] if model == "text" or (api == "gemini" and model in FAILED) else TOOLS
                    for client, front in (("openai-python", "chat"), ("openai-python", "responses"), ("anthropic-python", "messages")):
                        for form in ("stream", "whole"):
                            jobs.append({"id": f"{api} {model}", "client": client, "front": front, "form": form, "base": url, "model": model, "tools": tools})
            run = subprocess.run([PYTHON, os.path.join(here, "python_clients.py")], input="".join(json.dumps(j) + "\n" for j in jobs), capture_output=True, text=True)
        finally:
            for child in children:
                child.terminate()
        results = [json.loads(line) for line in run.stdout.splitlines()]
        if len(results) != len(jobs):
            sys.exit(f"foreign: {len(jobs)} questions, but {len(results)} answers: {run.stderr[-300:]}")
        wrong = [(r, why) for r in results if (why := wrong_with(r["id"].split()[1], r))]
        bad, total = bad + len(wrong), total + len(results)
        print(f"{name}: {len(results) - len(wrong)} of {len(results)} answers right, over {len(APIS[name])} APIs and 3 fronts")
        for result, why in wrong[:12]:
            print(f"    {result['id']} on {result['front']}, {result['form']}: {why}")
    sys.exit(1 if bad else 0)


main()
