#!/usr/bin/env python3
"""Judges /v1/responses by the specification of Open Responses (https://www.openresponses.org/specification).

usage: open_responses.py BIN

Asks what the specification's compliance page asks (https://www.openresponses.org/compliance): a text, a stream, a system prompt, a call, a call
in a stream, an image, a conversation. Every answer and every event is read with the types that the project `openresponses-types` makes of the
specification. Then the same for every recorded stream of fixtures/. Exits 1 when a case fails.
"""
import json, os, re, sys, urllib.request
import openresponses_types as spec
from servers import root, start_mock, start_server
from mock import model_of

RESPONSE = spec.ResponseResource
EVENTS = {}
for name in dir(spec):
    if name.endswith("StreamingEvent"):
        kind = getattr(spec, name)
        EVENTS[next(iter(kind.model_fields["type"].annotation)).value] = kind

TOOL = {
    "type": "function", "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
said = lambda role, content: {"type": "message", "role": role, "content": content}
TEXT, CALL = "openai-chat--llamacpp-smol-text", "openai-chat--row-09-id-missing"
CASES = [
    ("a text", TEXT, False, {"input": [said("user", "Say hello.")]}, "message"),
    ("a stream", TEXT, True, {"input": [said("user", "Count to five.")]}, "message"),
    ("a system prompt", TEXT, False, {"input": [said("system", "Talk like a pirate."), said("user", "Say hello.")]}, "message"),
    ("a call", CALL, False, {"input": [said("user", "The weather in Paris?")], "tools": [TOOL]}, "function_call"),
    ("a call in a stream", CALL, True, {"input": [said("user", "The weather in Paris?")], "tools": [TOOL]}, "function_call"),
    ("an image", TEXT, False, {"input": [said("user", [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PIXEL}])]}, "message"),
    ("a conversation", TEXT, False, {"input": [said("user", "I am Alice."), said("assistant", "Hello Alice!"), said("user", "Who am I?")]}, "message"),
]


def asked(base, body):
    """The status, content type and text of an answer."""
    request = urllib.request.Request(base + "/v1/responses", json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["content-type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", error.read().decode()


def wrong_with(kind, value, what):
    """Why a value is not of a type of the specification."""
    try:
        kind.model_validate(value)
        return []
    except ValueError as error:
        return [f"{what}: {re.sub(r' +', ' ', str(error).replace(chr(10), ' '))[:300]}"]


def read_stream(text):
    """The last event's response, the types of all events, and what is wrong with the stream."""
    wrong, types, last = [], [], None
    frames = [frame for frame in text.split("\n\n") if frame.strip()]
    if frames[-1] != "data: [DONE]":
        wrong.append(f"the stream ends with {frames[-1][:80]!r}, not [DONE]")
    for number, frame in enumerate(frames[:-1]):
        lines = dict(line.split(": ", 1) for line in frame.split("\n"))
        event = json.loads(lines["data"])
        types.append(event["type"])
        if lines.get("event") != event["type"]:
            wrong.append(f"event: {lines.get('event')}, but the type is {event['type']}")
        if "id" in lines:
            wrong.append("an event has an SSE id")
        if event.get("sequence_number") != number:
            wrong.append(f"sequence_number {event.get('sequence_number')} in place {number}")
        kind = EVENTS.get(event["type"])
        wrong += wrong_with(kind, event, event["type"]) if kind else [f"unknown event {event['type']}"]
        last = event.get("response", last) if event["type"] in ("response.completed", "response.incomplete", "response.failed") else last
    if types[:2] != ["response.created", "response.in_progress"]:
        wrong.append(f"the stream begins with {types[:2]}")
    return last, types, wrong


def judge(base, model, streams, body, wanted=None):
    """What is wrong with the answer to one request."""
    status, kind, text = asked(base, {"model": model, "stream": streams, **body})
    if status != 200:
        return [f"status {status}: {text[:200]}"] if wanted else []
    wrong, types = [], []
    if streams:
        response, types, wrong = read_stream(text)
        if not kind.startswith("text/event-stream"):
            wrong.append(f"content-type {kind}")
    else:
        response = json.loads(text)
    if response is None:
        return wrong + ["no event ends the response"]
    wrong += wrong_with(RESPONSE, response, "response")
    if not wanted:
        return wrong
    if response["status"] != "completed":
        wrong.append(f"status {response['status']}")
    if wanted not in [item["type"] for item in response["output"]]:
        wrong.append(f"output has no {wanted}")
    if streams and wanted == "function_call":
        parts = ("response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_item.done")
        wrong += [f"no event {part}" for part in parts if part not in types]
    return wrong


def main():
    index = os.path.join(root, "fixtures", "index.ndjson")
    labels = [json.loads(line) for line in open(index, encoding="utf-8")]
    labels = [l for l in labels if l["api"] == "openai-chat" and l["file"].endswith(".sse") and "part" not in l]
    mock, base = start_mock([index])
    server, url = start_server(sys.argv[1], "openai-chat", base, "open-responses")
    failed = 0
    try:
        for name, model, streams, body, wanted in CASES:
            wrong = judge(url, model, streams, body, wanted)
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'passed'}: {name}" + "".join(f"\n    {w}" for w in wrong[:5]))
        every = [(l, streams, judge(url, model_of(l), streams, {"input": "?", "tools": [TOOL]})) for l in labels for streams in (False, True)]
    finally:
        for child in (server, mock):
            child.terminate()
    bad = [f"{l['id']} {'stream' if streams else 'whole'}: {wrong[0]}" for l, streams, wrong in every if wrong]
    print(f"{len(every) - len(bad)} of {len(every)} answers of recorded streams fit the types" + "".join(f"\n    {b}" for b in bad[:8]))
    print(f"{len(CASES) - failed} of {len(CASES)} cases passed")
    sys.exit(1 if failed or bad else 0)


main()
