"""Whether what a client returned is right."""
import json, re
from truth import is_text

# What each client calls the reasons that a front sends.
REASONS = {
    "chat": {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"},
    "responses": {"stop": "completed", "tool_calls": "completed", "length": "incomplete:max_output_tokens", "content_filter": "incomplete:content_filter"},
    "messages": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"},
    "ai-sdk": {"stop": "stop", "tool_calls": "tool-calls", "length": "length", "content_filter": "content-filter"},
}

# Anthropic's own words for a good end, which its Messages API keeps.
GOOD_ENDS = ("stop_sequence", "pause_turn")

JAVASCRIPT = {"openai-node", "anthropic-node", "ai-sdk", "use-chat", "ag-ui"}

# The clients that have the AI SDK's words; those of AG-UI become them.
AI_SDK = {"ai-sdk", "use-chat", "ag-ui"}

# What tc-serve says of a body that ends before its end, and of a frame that cannot be read, by what the label has for the error.
SAID = {"cut": re.compile("ended? before|ends before|ended inside|was cut|disconnect"), "a frame that cannot be read": re.compile("a frame that is no(?:t a)? JSON.*is lost", re.DOTALL)}


def reason(truth, result):
    """What the client has to call the reason."""
    is_sdk = result["client"] in AI_SDK
    if result["front"] == "messages" and not is_sdk and truth.finish == "stop" and truth.api == "anthropic" and truth.word in GOOD_ENDS:
        return truth.word
    finish = truth.finish
    # A refusal is a reason of its own in the Messages API and in the AI SDK.
    if truth.refusals and finish == "stop" and (is_sdk or result["front"] == "messages"):
        finish = "content_filter"
    return REASONS["ai-sdk" if is_sdk else result["front"]][finish]


def rounded(value):
    """A value as JavaScript holds it: numbers have 53 bits."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def arguments(text):
    """The value of a call's arguments; None if they are not valid JSON in a text."""
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return None


def problems(truth, result, is_direct=False):
    """What is wrong with a result, each in a sentence; nothing if it is right."""
    error = result.get("error")
    if truth.error is not None:
        # A provider that failed must never look as if it had answered.
        if not error:
            return [f"the provider failed, and the client got an answer that ended with {result['finish']}"]
        return [] if is_direct else error_problems(truth, error)
    if error:
        return [f"raised {error['kind']} {error['status'] or ''}: {error['message'][:200]}"]
    ids = [id for id, _, _ in result["calls"]]
    found = [] if len(set(ids)) == len(ids) and all(ids) else [f"ids of calls are missing or not distinct: {ids}"]
    found += text_problems(truth, result) + call_problems(truth, result)
    if not is_direct:
        found += reasoning_problems(truth, result)
        if result["finish"] != reason(truth, result):
            found.append(f"finish reason: {result['finish']}, not {reason(truth, result)}")
        found += counts(truth, result)
    return found


def error_problems(truth, error):
    """Whether the client shows the provider's own message."""
    if truth.error in SAID:
        return [] if SAID[truth.error].search(error["message"]) else [f"the error does not say {truth.error!r}: {error['message'][:200]}"]
    # Clients quote a message in their own ways.
    plain = lambda text: re.sub(r"\\n|[^A-Za-z0-9]", "", text)
    want = plain(truth.error)[:100]
    return [] if want in plain(error["message"]) else [f"the error has another message: {error['message'][:200]!r}, not {truth.error[:200]!r}"]


def text_problems(truth, result):
    text = result["text"]
    if not isinstance(text, str):  # openai-python hands on what a provider sent in place of a text
        return [f"text: {json.dumps(text)[:80]} is not a text"]
    if truth.in_text:
        # White space beside a call may be its framing.
        want = truth.in_text["content"]
        return [] if text.split() == want.split() else [f"text: {text[-160:]!r}, not {want[-160:]!r}"]
    # Where the protocol has no refusals they are text, and the AI SDK shows the summary of a long conversation as text.
    extra = [r for r in truth.refusals if not result["refusal"]] + [s for s in truth.beside if result["client"] in AI_SDK]
    rests = [text] + [text.removeprefix(e) for e in extra if text.startswith(e)] + [text.removesuffix(e) for e in extra if text.endswith(e)]
    if result["refusal"] and result["refusal"] not in truth.refusals:
        return [f"refusal: {result['refusal']!r}, not {truth.refusals}"]
    return [] if any(is_text(truth, rest) for rest in rests) else [f"text: {len(text)} characters {text[-80:]!r}, not the {truth.length} of the label"]


def reasoning_problems(truth, result):
    got = result["reasoning"]
    if truth.in_text and "reasoning" in truth.in_text:
        want = truth.in_text["reasoning"]
        return [] if got.split() == want.split() else [f"reasoning: {got[-80:]!r}, not {want[-80:]!r}"]
    excess = len(got) - (truth.reasoning or 0)
    # Parts of a summary have an empty line between them, which is not the provider's.
    breaks = truth.api == "openai-responses" and excess % 2 == 0 and 0 <= excess // 2 <= got.count("\n\n")
    if truth.reasoning is None or excess == 0 or breaks or (truth.reasoning == 0 and got in truth.plans):
        return []
    return [f"reasoning: {len(got)} characters {got[-80:]!r}, not {truth.reasoning}"]


def as_read(call, result):
    """A call of a label as the client has it: the AI SDK has names of its own for the members of a shell's action, and leaves out the rest."""
    name, value = call
    if (name, result["client"], result["front"]) != ("shell", "ai-sdk", "responses") or not isinstance(value, dict) or "action" not in value:
        return call
    names = {"commands": "commands", "timeout_ms": "timeoutMs", "max_output_length": "maxOutputLength"}
    return [name, {"action": {names[member]: part for member, part in value["action"].items() if member in names and part is not None}}]


def call_problems(truth, result):
    calls = [as_read(call, result) for call in truth.calls]
    got = [[name, arguments(text)] for _, name, text in result["calls"]]
    # The AI SDK does not tell a shell of the client's from one in a container of the provider's.
    if (result["client"], result["front"]) == ("ai-sdk", "responses") and "shell" not in (name for name, _ in calls):
        got = [call for call in got if call[0] != "shell"]
    # A call that was cut is there, with any beginning of its arguments, or it is not there: the finish reason shows that it was cut.
    cut = [i for i, call in enumerate(calls) if call[1] is None]
    as_cut = [[name, None if i in cut else value] for i, (name, value) in enumerate(got)]
    wants = [calls, [call for call in calls if call[1] is not None]]
    # A label may say that what the model meant as a call is not read as one.
    is_other = truth.in_text and "calls" in truth.in_text
    is_right = bool(got) == truth.has_call or is_other or (cut and not got)
    found = [] if is_right else [f"has a tool call: {bool(got)}, not {truth.has_call}"]
    if result["client"] in JAVASCRIPT:
        got, as_cut, wants = rounded(got), rounded(as_cut), rounded(wants)
    return found + ([] if got in wants or as_cut in wants else [f"calls: {json.dumps(got)[:300]}, not {json.dumps(truth.calls)[:300]}"])


def counts(truth, result):
    usage, want = result["usage"] or {}, truth.usage
    if want is None:
        return []
    for name, member in (("input", "prompt_tokens"), ("output", "completion_tokens"), ("total", "total_tokens")):
        # A member that is there with null is one that nobody knows; one that is not there was not sent.
        if name not in usage or (member in want and want[member] is None) or (name == "total" and member not in want and want):
            continue
        if (usage[name] or 0) != want.get(member, 0):
            return [f"usage: {usage}, not {want}"]
    if "total" in usage and (usage["total"] or 0) < (usage["input"] or 0) + (usage["output"] or 0):
        return [f"usage: the total is less than its parts: {usage}"]
    return [] if usage or not want else [f"no usage, not {want}"]


def is_withdrawn(result):
    """Whether a stream ended with an error because the provider took back what was sent already: no protocol has a form for that."""
    message = result.get("error", {}).get("message", "")
    return result["form"] == "stream" and ("withdrew a call" in message or "ended with other arguments than it began with" in message)


def differences(truth, stream, whole):
    """What a stream and a whole answer hold differently."""
    if "error" in stream or "error" in whole:
        return [] if "error" in stream and "error" in whole else ["one of the stream and the whole answer is an error"]
    skipped = set()
    # One text per answer holds text and refusals in the order in which they came, or after each other.
    if truth.refusals or truth.beside:
        skipped.add("text")
    if any(value is None for _, value in truth.calls):
        skipped.add("calls")
    if truth.api == "openai-responses":
        # A stream has one summary with empty lines in it, a whole answer the provider's parts, which the AI SDK joins without any.
        stream, whole = ({**form, "reasoning": form["reasoning"].replace("\n\n", "")} for form in (stream, whole))
    members = [m for m in ("text", "refusal", "reasoning", "calls", "finish", "usage") if stream[m] != whole[m] and m not in skipped]
    return [f"the stream has {m} {json.dumps(stream[m])[:150]}, the whole answer {json.dumps(whole[m])[:150]}" for m in members]
