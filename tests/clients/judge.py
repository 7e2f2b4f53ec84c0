"""Whether what a client returned is right."""
import json

# What each client calls the reasons that a front sends.
REASONS = {
    ("chat", "own"): {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"},
    ("responses", "own"): {"stop": "completed", "tool_calls": "completed", "length": "incomplete:max_output_tokens", "content_filter": "incomplete:content_filter"},
    ("messages", "own"): {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"},
    "ai-sdk": {"stop": "stop", "tool_calls": "tool-calls", "length": "length", "content_filter": "content-filter"},
}

# Anthropic's own words for a good end, which its Messages API keeps; the labels have one for all.
GOOD_ENDS = ["stop_sequence", "pause_turn"]

JAVASCRIPT = {"openai-node", "anthropic-node", "ai-sdk"}


def reasons(truth, front, client):
    """What the client may call the reason. A refusal is one of its own in the SDKs of Anthropic and Vercel."""
    names = REASONS["ai-sdk" if client == "ai-sdk" else (front, "own")]
    good_ends = GOOD_ENDS if truth.finish == "stop" and names is REASONS["messages", "own"] else []
    return [names.get(truth.finish)] + ([names["content_filter"]] if truth.refusal else []) + good_ends


def rounded(value):
    """A value as JavaScript holds it: numbers have 53 bits."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


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
    ids = [id for id, _, _ in result["calls"]]
    found = [] if len(set(ids)) == len(ids) and all(ids) else [f"ids of calls are missing or not distinct: {ids}"]
    found += text_problems(truth, result) + call_problems(truth, result)
    if not is_direct:
        if result["finish"] not in reasons(truth, result["front"], result["client"]):
            found.append(f"finish reason: {result['finish']}, not {reasons(truth, result['front'], result['client'])[0]}")
        found += counts(truth, result)
    return found


def text_problems(truth, result):
    if truth.refusal:
        # Where the protocol has no refusals they are text, in whichever order the parts came.
        texts = {truth.text, truth.text + truth.refusal, truth.refusal + truth.text}
        return [] if result["text"] in texts else [f"text: {result['text'][-160:]!r}, not {sorted(texts)}"]
    # The AI SDK shows the summary of a long conversation as text when the answer comes whole.
    if truth.summary and result["client"] == "ai-sdk" and result["text"] == truth.summary + truth.text:
        return []
    if result["text"] != truth.text:
        return [f"text: {len(result['text'])} characters {result['text'][-80:]!r}, not {len(truth.text)} {truth.text[-80:]!r}"]
    return []


def call_problems(truth, result):
    got = [[name, arguments(text)] for _, name, text in result["calls"]]
    # A call that was cut is there, with any beginning of its arguments, or it is not there: the finish reason shows that it was cut.
    cut = [i for i, call in enumerate(truth.calls) if call[1] is None]
    as_cut = [[name, None if i in cut else value] for i, (name, value) in enumerate(got)]
    wants = [truth.calls, [call for call in truth.calls if call[1] is not None]]
    if result["client"] in JAVASCRIPT:
        got, as_cut, wants = rounded(got), rounded(as_cut), rounded(wants)
    return [] if got in wants or as_cut in wants else [f"calls: {json.dumps(got)[:300]}, not {json.dumps(truth.calls)[:300]}"]


def counts(truth, result):
    usage, want = result["usage"] or {}, truth.usage
    for name, member in (("input", "prompt_tokens"), ("output", "completion_tokens"), ("total", "total_tokens")):
        if name in usage and (usage[name] or 0) != want.get(member, 0) and (name != "total" or member in want):
            return [f"usage: {usage}, not {want}"]
    return [] if usage or not want else [f"no usage, not {want}"]


def is_withdrawn(result):
    """Whether a stream ended with an error because the provider took back what was sent already: no protocol has a form for that."""
    message = result.get("error", {}).get("message", "")
    return result["form"] == "stream" and ("withdrew a call" in message or "ended with other arguments than it began with" in message)


def differences(truth, stream, whole):
    """What a stream and a whole answer hold differently."""
    if "error" in stream or "error" in whole:
        return [] if "error" in stream and "error" in whole else ["one of the stream and the whole answer is an error"]
    # The Node client keeps the last piece alone of a member that it does not know, such as the reasoning of a chat.
    hides_reasoning = (stream["client"], stream["front"]) == ("openai-node", "chat")
    # One text per answer holds text and refusals in the order in which they came, or after each other.
    skipped = {"reasoning"} if hides_reasoning else set()
    if truth.refusal or truth.summary:
        skipped.add("text")
    if any(value is None for _, value in truth.calls):
        skipped.add("calls")
    members = [m for m in ("text", "refusal", "reasoning", "calls", "finish", "usage") if stream[m] != whole[m] and m not in skipped]
    return [f"the stream has {m} {json.dumps(stream[m])[:150]}, the whole answer {json.dumps(whole[m])[:150]}" for m in members]
