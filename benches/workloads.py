"""What the commands read when they are measured: events and providers' bodies, the same in every run."""
import json
import random

WORDS = "the of and a to in is you that it he was for on are with as hut lake beds path snow rain summit bridge valley".split()


def arguments(dice, size):
    """One JSON object of about `size` bytes with escapes, nesting and numbers."""
    members, length = {}, 0
    while length < size:
        numbers = [dice.random(), len(members), None, True]
        members[f"k{len(members)}"] = {"text": " ".join(dice.choices(WORDS, k=12)) + ' "q" \\ <b>\n é', "n": numbers}
        length += 130
    return json.dumps(members, ensure_ascii=False)


def pieces(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream(events, tagged=False, reason="tool_calls"):
    mode = {"tools_mode": "tag", "dialect": "hermes"} if tagged else {"tools_mode": "native"}
    return [{"type": "stream_start", "v": 1, "api": "openai-chat", "model": "m", "id": "r1", **mode}, *events, {"type": "stream_end", "finish_reason": reason}]


def text(piece, **fields):
    return {"type": "content_delta", **fields, "text": piece}


def fragment(index, **fields):
    return {"type": "tool_call_delta", "index": index, **fields}


def prose(dice, size):
    return stream([text(dice.choice(WORDS) + " ", t=number / 8) for number in range(int(100_000 * size))], reason="stop")


def one_call(dice, size):
    fragments = [fragment(0, arguments=piece) for piece in pieces(arguments(dice, 2_000_000 * size), 16)]
    return stream([fragment(0, tool_id="c0", tool_name="write"), *fragments])


def many_calls(dice, size):
    events, waiting = [], []
    for index in range(int(500 * size)):
        events.append(fragment(index, tool_id=f"c{index}", tool_name=f"f{index % 7}"))
        waiting.append((index, pieces(arguments(dice, 400), 8)[::-1]))
    while waiting:
        at = dice.randrange(len(waiting))
        index, left = waiting[at]
        events.append(fragment(index, arguments=left.pop()))
        if not left:
            waiting[at] = waiting[-1]
            waiting.pop()
    return stream(events)


def short_streams(dice, size):
    """Streams one after the other, half of them with a call."""
    events = []
    for number in range(int(5_000 * size)):
        told = [text(dice.choice(WORDS) + " ") for _ in range(12)]
        if number % 2:
            told.append(fragment(0, tool_id="c", tool_name="get"))
            told += [fragment(0, arguments=piece) for piece in pieces(arguments(dice, 60), 8)]
        whole = stream(told, reason="tool_calls" if number % 2 else "stop")
        events += [{"type": event.pop("type"), "stream": f"s{number}", **event} for event in whole]
    return events


def tagged_text(dice, size):
    near = ("<", "<t", "<tool", "a < b", "<div>", "<tool_cal l")
    words = [dice.choice(near if dice.random() < 0.05 else WORDS) + " " for _ in range(int(100_000 * size))]
    return stream(map(text, words), tagged=True, reason="stop")


def tagged(call):
    return f"<tool_call>\n{call}\n</tool_call>"


def tagged_calls(dice, size):
    """Prose and calls, cut anywhere."""
    told = []
    for number in range(int(1500 * size)):
        call = tagged('{"name": "f%d", "arguments": %s}' % (number % 7, arguments(dice, 90)))
        whole, at = f"{' '.join(dice.choices(WORDS, k=20))}\n{call}\n", 0
        while at < len(whole):
            to = at + dice.randint(1, 8)
            told.append(text(whole[at:to]))
            at = to
    return stream(told, tagged=True)


def one_tagged_call(dice, size):
    call = tagged('{"name": "write", "arguments": %s}' % arguments(dice, 1_000_000 * size))
    return stream(map(text, pieces(call, 4)), tagged=True)


def openai(dice, size):
    def chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        envelope = {"id": "chatcmpl-269e0d37f2a74de452e6b438", "object": "chat.completion.chunk", "created": 1790000000}
        server = {"model": "gpt-4o-2024-08-06", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}
        return {**envelope, **server, "choices": [choice]}

    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": ""}}
    fragments = [{"index": 0, "function": {"arguments": piece}} for piece in pieces(arguments(dice, 100_000 * size), 5)]
    words = [chunk({"content": dice.choice(WORDS) + " "}) for _ in range(int(20_000 * size))]
    return [*words, *(chunk({"tool_calls": [one]}) for one in (call, *fragments)), chunk({}, "tool_calls")]


def anthropic(dice, size):
    def delta(index, kind, **fields):
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}

    start = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 9}}}
    block = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
    words = [delta(0, "text_delta", text=dice.choice(WORDS) + " ") for _ in range(int(20_000 * size))]
    fragments = [delta(1, "input_json_delta", partial_json=piece) for piece in pieces(arguments(dice, 100_000 * size), 5)]
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 99}}, {"type": "message_stop"}]
    opened = [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, *words, {"type": "content_block_stop", "index": 0}]
    return [start, *opened, {"type": "content_block_start", "index": 1, "content_block": block}, *fragments, {"type": "content_block_stop", "index": 1}, *end]


def responses(dice, size):
    number = 0

    def event(kind, **fields):
        nonlocal number
        number += 1
        return {"type": f"response.{kind}", **fields, "sequence_number": number}

    def delta(kind, index, text, **fields):
        padding = "".join(dice.choices("abcdefghijkABCDEFGHIJK0123456789", k=16 - len(text) % 16))
        return event(f"{kind}.delta", item_id=f"item_{index}", output_index=index, **fields, delta=text, obfuscation=padding)

    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    message = {"id": "item_0", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    call = {"id": "item_1", "type": "function_call", "call_id": "call_1", "name": "write", "arguments": ""}
    whole = arguments(dice, 100_000 * size)
    opened = [event("created", response=response), event("output_item.added", output_index=0, item=message)]
    words = [delta("output_text", 0, dice.choice(WORDS) + " ", content_index=0, logprobs=[]) for _ in range(int(20_000 * size))]
    begun = event("output_item.added", output_index=1, item=call)
    fragments = [delta("function_call_arguments", 1, piece) for piece in pieces(whole, 5)]
    done = event("output_item.done", output_index=1, item={**call, "arguments": whole, "status": "completed"})
    return [*opened, *words, begun, *fragments, done, event("completed", response={**response, "status": "completed"})]


def gemini(dice, size):
    """Texts of some words, as this API sends them, and the counts of tokens so far."""
    tokens = 0

    def chunk(parts, **fields):
        nonlocal tokens
        tokens += 9
        of_prompt = {"promptTokenCount": 42, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 42}]}
        counts = {**of_prompt, "candidatesTokenCount": tokens, "totalTokenCount": 42 + tokens}
        candidate = {"content": {"parts": parts, "role": "model"}, **fields, "index": 0}
        return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash", "responseId": "r1"}

    words = [chunk([{"text": " ".join(dice.choices(WORDS, k=8)) + " "}]) for _ in range(int(20_000 * size))]
    return [*words, chunk([{"functionCall": {"name": "write", "args": {"n": 1}}}], finishReason="STOP")]


def ollama(dice, size):
    def line(text, **fields):
        time = f"2026-11-28T10:00:{dice.randrange(60):02}.{dice.randrange(10**6)}Z"
        return {"model": "qwen3:8b", "created_at": time, "message": {"role": "assistant", "content": text}, "done": False, **fields}

    words = [line(dice.choice(WORDS) + " ") for _ in range(int(20_000 * size))]
    return [*words, line("", done=True, done_reason="stop", prompt_eval_count=9, eval_count=len(words))]


def tape(dice, size):
    """The chunks of Chat Completions, each in a read of its own."""
    request = {"method": "POST", "url": "https://provider.example/v1/chat/completions", "body": {"model": "m", "messages": []}, "sha256": "ab"}
    yield {"tape": 1, "api": "openai-chat", "model": "m", "request": request, "redactions": []}
    yield [0.4, "head", {"status": 200, "headers": {"content-type": "text/event-stream"}}]
    for chunk in openai(dice, size):
        data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
        yield [0.01, "text", f"data: {data}\n\n"]
    yield [0.1, "end", "eof"]


# What is read, and the commands that read it. The inputs of llm-stream are bodies: jq reads the same payloads, a line each.
INPUTS = {
    "prose": (prose, ["tc-detect", "tag-parse", "tc-accumulate"]),
    "one-call": (one_call, ["tc-detect", "tc-accumulate"]),
    "many-calls": (many_calls, ["tc-accumulate"]),
    "short-streams": (short_streams, ["tc-detect", "tc-accumulate"]),
    "tagged-text": (tagged_text, ["tag-parse"]),
    "tagged-calls": (tagged_calls, ["tag-parse"]),
    "one-tagged-call": (one_tagged_call, ["tag-parse"]),
    "openai": (openai, ["llm-stream --api openai-chat --replay -"]),
    "anthropic": (anthropic, ["llm-stream --api anthropic --replay -"]),
    "responses": (responses, ["llm-stream --api openai-responses --replay -"]),
    "gemini": (gemini, ["llm-stream --api gemini --replay -"]),
    "ollama": (ollama, ["llm-stream --api ollama --replay -"]),
    "tape": (tape, ["llm-stream --replay -"]),
}
# The inputs that are written as Server-Sent Events, and whether each event has its type as its name.
NAMED = {"openai": False, "anthropic": True, "responses": True, "gemini": False}


def make(name, folder, size):
    """Writes the input; returns what jq reads and what the commands read."""
    lines = folder / f"{name}-{size}"
    events = [json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in INPUTS[name][0](random.Random(name), size)]
    lines.write_text("".join(event + "\n" for event in events))
    if name not in NAMED:
        return lines, lines
    body = folder / f"{name}-{size}.sse"
    event = (lambda data: f"event: {json.loads(data)['type']}\n") if NAMED[name] else (lambda data: "")
    frames = "".join(f"{event(data)}data: {data}\n\n" for data in events)
    body.write_text(frames + ("data: [DONE]\n\n" if name == "openai" else ""))
    return lines, body
