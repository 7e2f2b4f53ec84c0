"""Whether what a client returned is right."""
import json

# What each client calls the reasons that a front sends.
REASONS = {
    ("chat", "own"): {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"},
    ("responses", "own"): {"stop": "completed", "tool_calls": "completed", "length": "incomplete:max_output_tokens", "content_filter": "incomplete:content_filter"},
    ("messages", "own"): {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"},
    "ai-sdk": {"stop": "stop", "tool_calls": "tool-calls", "length": "length", "content_filter": "content-filter"},
}


def reason(truth, front, client):
    return REASONS["ai-sdk" if client == "ai-sdk" else (front, "own")].get(truth.finish)


def arguments(text):
    """The value of a call's arguments; None if they are not valid JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def problems(truth, result, is_direct=False):
    """What is wrong with a result, each in a sentence; nothing if it is right."""
    error = result.get("error")
    if truth.failed:
        # A provider that failed must never look as if it had answered.
        return [] if error else [f"the provider failed, and the client got an answer that ended with {result['finish']}"]
    if error:
        return [f"raised {error['kind']} {error['status'] or ''}: {error['message'][:200]}"]
    found = []
    texts = (truth.text, truth.text + truth.refusal) if truth.refusal else (truth.text,)
    if result["text"] not in texts and result["text"] + result["refusal"] not in texts:
        found.append(f"text: {len(result['text'])} characters {result['text'][-80:]!r}, not {len(truth.text)} {truth.text[-80:]!r}")
    got = [[name, arguments(text)] for _, name, text in result["calls"]]
    # A call that was cut may be there or not, as long as it does not look whole.
    whole = [call for call in truth.calls if call[1] is not None]
    if got != whole and got != truth.calls:
        found.append(f"calls: {json.dumps(got)[:300]}, not {json.dumps(truth.calls)[:300]}")
    ids = [id for id, _, _ in result["calls"]]
    if len(set(ids)) != len(ids) or not all(ids):
        found.append(f"ids of calls are missing or not distinct: {ids}")
    if not is_direct:
        if result["finish"] != reason(truth, result["front"], result["client"]):
            found.append(f"finish reason: {result['finish']}, not {reason(truth, result['front'], result['client'])}")
        found += counts(truth, result)
    return found


def counts(truth, result):
    usage, want = result["usage"] or {}, truth.usage
    for name, member in (("input", "prompt_tokens"), ("output", "completion_tokens"), ("total", "total_tokens")):
        if name in usage and (usage[name] or 0) != want.get(member, 0) and (name != "total" or member in want):
            return [f"usage: {usage}, not {want}"]
    return [] if usage or not want else [f"no usage, not {want}"]


def differences(stream, whole):
    """What a stream and a whole answer say differently."""
    if "error" in stream or "error" in whole:
        return [] if "error" in stream and "error" in whole else ["one of the stream and the whole answer is an error"]
    members = [m for m in ("text", "refusal", "reasoning", "calls", "finish", "usage") if stream[m] != whole[m]]
    return [f"the stream has {m} {json.dumps(stream[m])[:150]}, the whole answer {json.dumps(whole[m])[:150]}" for m in members]
