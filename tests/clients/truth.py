"""What is right for each recorded stream: its label, and nothing that toolpipe reads.

Text is the label's length and digest. docs/evaluation.md describes the members of a label, README.md what of them no client can see. Of the body
itself only texts are taken that a label has no member for: refusals, plans and summaries, by their names in the JSON.
"""
import dataclasses, hashlib, json, os
from mock import TYPES, model_of

# Why an answer ended, by the words of the providers. Where the reason is missing, but not the end mark, the answer has ended well.
REASONS = {
    "stop": {None, "stop", "end_turn", "stop_sequence", "pause_turn", "STOP", "1", "COMPLETE", "completed", "eos"},
    "tool_calls": {"tool_calls", "function_call", "tool_use", "TOOL_CALL"},
    "length": {"length", "max_tokens", "model_length", "MAX_TOKENS", "incomplete:max_output_tokens", "model_context_window_exceeded"},
    "content_filter": {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT", "RECITATION", "UNEXPECTED_TOOL_CALL", "incomplete:content_filter"},
}


@dataclasses.dataclass
class Truth:
    id: str
    api: str
    model: str
    tools: list
    has_call: bool
    calls: list  # [name, arguments], with None for arguments that were cut or are not valid
    length: int  # of the text
    digest: str
    reasoning: object  # its length; None where nobody knows
    word: object  # the provider's finish reason
    finish: str  # stop, tool_calls, length, content_filter
    usage: object  # counts by name, None for one that nobody knows; None where nobody knows any
    error: object  # the provider's own error, or `cut` for a body that ends before its end; None for an answer
    in_text: object  # {content, reasoning, calls} where calls or reasoning in the text are read; None where the text stays as it came
    refusals: list  # what the provider says in place of an answer, and no label has
    beside: list  # other texts that no label has: the summary of a conversation
    plans: list  # reasoning under another name


def openai_tool(tool):
    """A tool in any provider's shape as OpenAI's {name, description, parameters}."""
    inner = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    schema = next((inner[k] for k in ("parameters", "input_schema", "inputSchema", "parameters_json_schema") if isinstance(inner.get(k), dict)), None)
    if not inner.get("name") or "toolSpec" in inner:
        return None
    return {"name": inner["name"], "description": inner.get("description") or "", "parameters": lowered(schema or {"type": "object", "properties": {}})}


def lowered(schema):
    """A schema with the types of Gemini (`OBJECT`) as JSON Schema writes them."""
    if isinstance(schema, list):
        return [lowered(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: v.lower() if k == "type" and isinstance(v, str) else lowered(v) for k, v in schema.items()}


def tools_of(label):
    """The tools of the request: those of the label, and those that are called although the label lists none."""
    tools = []
    for tool in label.get("tools") or []:
        inner = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        tools += [t for t in map(openai_tool, inner) if t]
    names = {t["name"] for t in tools}
    for call in label["calls"]:
        if call["name"] and call["name"] not in names:
            names.add(call["name"])
            tools.append({"name": call["name"], "description": "", "parameters": {"type": "object", "properties": {}}})
    return tools


def values_of(body):
    """Every JSON value of a body: its lines, its `data:` lines, or the whole."""
    try:
        yield json.loads(body)
        return
    except ValueError:
        pass
    for line in body.splitlines():
        try:
            yield json.loads(line.removeprefix("data:"))
        except ValueError:
            pass


def texts_of(value, name):
    """Every text with this name in a JSON value, in order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == name and isinstance(inner, str) else texts_of(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner, name)


def candidates(values, *names):
    """What may be one text: each text with one of these names, and all of them in a row."""
    found = [text for value in values for name in names for text in texts_of(value, name) if text]
    if not found:
        return []
    # A text may be there in pieces, in pieces and whole, or in several parts.
    return list(dict.fromkeys([*found, "".join(found), "".join(dict.fromkeys(found))]))


def load(index):
    """The labels of an index with a body of their own, and where their bodies are."""
    folder = os.path.dirname(os.path.abspath(index))
    labels = [json.loads(line) for line in open(index, encoding="utf-8")]
    labels = [l for l in labels if "part" not in l and os.path.splitext(l["file"])[1] in TYPES]
    return [(label, os.path.join(folder, label["file"])) for label in labels]


def unlabelled(file):
    """The texts of a body that labels have no member for: refusals, summaries, plans."""
    values = list(values_of(open(file, encoding="utf-8", errors="replace").read()))
    blocks = [block for value in values if isinstance(value, dict) for block in (value.get("content_block"), value.get("delta")) if isinstance(block, dict)]
    summaries = [block for block in blocks if "compaction" in str(block.get("type"))]
    return candidates(values, "refusal", "explanation"), candidates(summaries, "content"), candidates(values, "tool_plan")


def truth_of(label, texts):
    """What is right for the stream of a label. `texts` are those of `unlabelled`."""
    missing = [m for m in ("finish_reason", "stream_error", "usage", "content_len", "content_sha256") if m not in label]
    if missing:
        raise SystemExit(f"matrix: the label of {label['id']} has no {' and no '.join(missing)}")
    calls = [[c["name"], c["arguments"]] for c in label["calls"]]
    error = label["stream_error"]
    if error is None and not all(name for name, _ in calls):
        error = "a call came without a name"  # No API has such a call.
    in_text = label.get("in_text")
    read = [[c["name"], c["arguments"]] for c in in_text["calls"]] if in_text and "calls" in in_text else calls
    return Truth(
        label["id"], label["api"], model_of(label), tools_of(label), label["has_tool_call"], read, label["content_len"], label["content_sha256"],
        label.get("reasoning_len"), label["finish_reason"], None if error else finish_of(label, read), label["usage"], error, in_text, *texts)


def reason_of(word):
    """The reason that a provider's word stands for. Gemini's may be a number."""
    word = str(word) if isinstance(word, int) else word
    return next((reason for reason, words in REASONS.items() if word in words), None)


def finish_of(label, calls):
    """The reason as it has to be: calls that came make `tool_calls` of `stop`, and with a call that was cut the answer was cut."""
    reason = reason_of(label["finish_reason"])
    if reason is None:
        raise SystemExit(f"matrix: the label of {label['id']} has the unknown finish reason {label['finish_reason']!r}")
    if reason not in ("stop", "tool_calls"):
        return reason
    if any(arguments is None for _, arguments in calls):
        return "length"
    return "tool_calls" if calls else "stop"


def is_text(truth, text):
    """Whether this is the text of the label."""
    return len(text) == truth.length and hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest() == truth.digest
