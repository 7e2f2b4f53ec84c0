"""Labels with one member changed: each has to be noticed on every front by every client, or to be in the table of what no client can see."""
import copy
from judge import AI_SDK
from truth import REASONS, reason_of

# Members that say nothing of an answer.
NOT_OF_AN_ANSWER = {
    "id": "names the stream", "file": "names the body", "part": "names the stream in a body; the mock provider sends none of them",
    "api": "chooses the decoder", "tools": "are sent with the request", "tools_mode": "is of the request", "dialect": "is of the request",
    "source": "says where the recording comes from", "provider": "says who served the model", "model": "is the name in the request; an answer has the provider's own",
    "licence": "is of the recording", "tags": "are words for reports", "proposed": "counts nowhere", "sha256": "is of the recording",
    "first_tool_event": "counts events of the body", "first_content_event": "counts events of the body", "first_chunk_wrong": "is of a checker",
}

# What every client sees on every front.
SEEN = (
    "finish_reason", "stream_error", "has_tool_call", "calls", "usage.prompt_tokens", "usage.completion_tokens", "content_len", "content_sha256",
    "reasoning_len",
)

# What no client can see, though it is of an answer: (member, what was changed, why).
UNSEEN = [
    ("every member but stream_error", "an answer that failed", "the client raises the provider's error and returns nothing else"),
    ("finish_reason", "among words of one meaning, and between stop and a call", "the reason follows from the content (bug 4 of docs/serve-apis.md): with a call it is a call, without one it is the end"),
    ("finish_reason", "among stop, a call and length, where a call was cut", "a call that was cut makes the reason length (bug 15), whatever the provider says"),
    ("finish_reason", "between stop and content_filter, where the model refused, on the front messages and in the AI SDK", "they have one reason for both"),
    ("has_tool_call", "where every call was cut", "a call that was cut may be left out"),
    ("calls", "of which the arguments were cut, and of an answer that was cut", "the client gets any beginning of the arguments, or no call"),
    ("usage", "that becomes null", "null says that nobody knows the tokens"),
    ("usage.total_tokens", "left out, on the front messages, and in the AI SDK", "without it the total only has to hold its parts; the Messages API has none, and the SDK adds its own"),
    ("content_len, content_sha256, reasoning_len, has_tool_call", "where in_text has the same", "in_text goes before"),
]


def changed(label, member, value):
    out = copy.deepcopy(label)
    out[member] = value
    return out


def of_calls(label):
    calls = label["calls"]
    other = {"name": "mutated", "arguments": {"mutated": 1}}
    yield "a call more", [*calls, other]
    if calls:
        yield "a call less", calls[:-1]
        yield "the name", [*calls[:-1], {**calls[-1], "name": calls[-1]["name"] + "_mutated"}]
        if calls[-1]["arguments"] is not None:
            yield "the arguments", [*calls[:-1], {**calls[-1], "arguments": {**calls[-1]["arguments"], "mutated": 1}}]
            yield "cut arguments", [*calls[:-1], {**calls[-1], "arguments": None}]
        if calls[::-1] != calls:
            yield "the order", calls[::-1]


def mutations(label):
    """(member, what was changed, the label with it)."""
    kind = reason_of(label["finish_reason"]) or "stop"
    for other in REASONS:
        if other != kind:
            yield "finish_reason", f"{kind} to {other}", changed(label, "finish_reason", other)
    if label["stream_error"] is None:
        yield "stream_error", "a failure", changed(label, "stream_error", "The mutated provider failed.")
    else:
        yield "stream_error", "no failure", changed({**label, "finish_reason": "stop"}, "stream_error", None)
        yield "stream_error", "another failure", changed(label, "stream_error", "The mutated provider failed.")
    yield "has_tool_call", "flipped", changed(label, "has_tool_call", not label["has_tool_call"])
    # What in_text says of calls goes before.
    if "calls" not in (label.get("in_text") or {}):
        for what, calls in of_calls(label):
            yield "calls", what, changed(label, "calls", calls)
    usage = label["usage"]
    if usage is None:
        yield "usage", "of null", changed(label, "usage", {"prompt_tokens": 987654, "completion_tokens": 98765})
    else:
        yield "usage", "to null", changed(label, "usage", None)
        for member in ("prompt_tokens", "completion_tokens", "total_tokens"):
            if member in usage or member != "total_tokens":
                yield f"usage.{member}", "one more", changed(label, "usage", {**usage, member: (usage.get(member) or 0) + 1})
            if usage.get(member):
                yield f"usage.{member}", "left out", changed(label, "usage", {k: v for k, v in usage.items() if k != member})
    yield "content_len", "one more", changed(label, "content_len", label["content_len"] + 1)
    yield "content_sha256", "another", changed(label, "content_sha256", "0" * 64)
    if label.get("reasoning_len") is not None:
        yield "reasoning_len", "one more", changed(label, "reasoning_len", label["reasoning_len"] + 1)
    for member in label.get("in_text") or {}:
        value = label["in_text"][member]
        value = [*value, {"name": "mutated", "arguments": {}}] if member == "calls" else value + "."
        yield f"in_text.{member}", "more", changed(label, "in_text", {**label["in_text"], member: value})


def unseen(truth, member, what, client, front):
    """The row of `UNSEEN` by which a change may go unnoticed; None where it has to be noticed."""
    is_cut = any(arguments is None for _, arguments in truth.calls)
    if truth.error is not None and member != "stream_error":
        return 0
    if member == "finish_reason":
        if what in ("stop to tool_calls", "tool_calls to stop"):
            return 1
        if is_cut and what.endswith(("to stop", "to tool_calls", "to length")):
            return 2
        if truth.refusals and (front == "messages" or client in AI_SDK) and what in ("stop to content_filter", "content_filter to stop", "content_filter to tool_calls"):
            return 3
    if member == "has_tool_call" and is_cut and all(arguments is None for _, arguments in truth.calls):
        return 4
    if member == "calls" and (is_cut and what in ("the name", "a call less", "the order") or what == "cut arguments" and truth.finish in ("length", "content_filter")):
        return 5
    if member == "usage" and what == "to null":
        return 6
    if member == "usage.total_tokens" and (front == "messages" or client in AI_SDK or what == "left out"):
        return 7
    in_text = truth.in_text or {}
    if {"content_len": "content", "content_sha256": "content", "reasoning_len": "reasoning", "has_tool_call": "calls"}.get(member) in in_text:
        return 8
    return None
