"""What is right for each recorded stream: its label, and what `llm-stream | tc-accumulate` reads in its body.

The calls, the length and the digest of the text, and whether the provider failed are the label's; where a label lacks one of them (those of
fixtures/ have no digest), and for reasons and tokens, the pipeline's reading counts.
"""
import collections, dataclasses, hashlib, json, os, subprocess, tempfile
from mock import TYPES, model_of


@dataclasses.dataclass
class Truth:
    id: str
    api: str
    model: str
    tools: list
    text: str
    refusal: str
    summary: str  # of the conversation, by the provider (compaction)
    calls: list  # [name, arguments], with None for arguments that were cut or are not valid
    finish: str  # stop, tool_calls, length, content_filter
    usage: dict
    failed: bool  # the provider's own error, or a body that ends before its end
    in_text: object  # [text, calls, finish] when calls or reasoning in the text are read too, if that differs


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


class Reading:
    """What the pipeline reads in one body."""

    def __init__(self):
        self.text, self.refusal, self.summary, self.usage, self.finish, self.failed, self.calls = "", "", "", {}, None, False, {}

    def ordered(self):
        return [self.calls[index] for index in sorted(self.calls)]

    def take(self, e):
        kind = e["type"]
        if kind == "content_delta":
            self.text += e["text"]
        elif kind == "server_item" and e.get("kind") == "compaction":
            self.summary += e["data"].get("content") or ""
        elif kind == "refusal_delta":
            self.refusal += e["text"]
        elif kind == "session_stats":
            self.usage.update({k: v for k, v in e.items() if k.endswith("_tokens")})
        elif kind == "error":
            self.failed = True
        elif kind == "stream_end":
            self.finish = e.get("finish_reason")
        elif kind == "tool_call":
            broken = (e.get("error") or {}).get("code") in ("incomplete", "invalid_json")
            self.calls[e["index"]] = [e["tool_name"], None if broken else e["arguments"]]


def readings(bin, folder, api, labels, reads_text):
    """The readings of many bodies, by file. With `reads_text` calls and reasoning that the model wrote as text are read, as tc-serve does."""
    exe = lambda name: os.path.join(bin, name)
    replay = [x for label in labels for x in ("--replay", label["file"])]
    with tempfile.TemporaryFile() as events, tempfile.TemporaryFile() as out:
        subprocess.run([exe("llm-stream"), "--no-time", "--api", api, "--speed", "max", *replay], cwd=folder, stdin=subprocess.DEVNULL, stdout=events, stderr=subprocess.DEVNULL)
        events.seek(0)
        if reads_text:
            tools = {label["file"]: [{"type": "function", "function": tool} for tool in tools_of(label)] for label in labels}
            with tempfile.TemporaryFile() as offered:
                for line in events:
                    if b'"type":"stream_start"' in line[:40]:
                        e = json.loads(line)
                        line = json.dumps({**e, "tools": tools[e["stream"]]}).encode() + b"\n"
                    offered.write(line)
                offered.seek(0), events.seek(0), events.truncate()
                subprocess.run([exe("tag-parse"), "--no-time", "--when", "always", "--dialect", "auto"], stdin=offered, stdout=events, stderr=subprocess.DEVNULL)
            events.seek(0)
        subprocess.run([exe("tc-accumulate"), "--no-time"], stdin=events, stdout=out, stderr=subprocess.DEVNULL)
        out.seek(0)
        found = collections.defaultdict(Reading)
        for line in out:
            e = json.loads(line)
            if not e.get("choice"):
                found[e.get("stream")].take(e)
    return found


def load(index, bin):
    """The truth of every stream that an index labels."""
    folder = os.path.dirname(os.path.abspath(index))
    labels = [json.loads(line) for line in open(index, encoding="utf-8")]
    labels = [l for l in labels if "part" not in l and os.path.splitext(l["file"])[1] in TYPES]
    found = {}
    for api in {l["api"] for l in labels}:
        mine = [l for l in labels if l["api"] == api]
        plain, tagged = (readings(bin, folder, api, mine, reads_text) for reads_text in (False, True))
        found.update({l["file"]: (plain[l["file"]], tagged[l["file"]]) for l in mine})
    return [truth_of(label, *found[label["file"]]) for label in labels]


def truth_of(label, reading, tagged):
    if "content_sha256" in label:
        digest = hashlib.sha256(reading.text.encode()).hexdigest()
        if (len(reading.text), digest) != (label["content_len"], label["content_sha256"]):
            raise SystemExit(f"matrix: {label['id']}: llm-stream does not read the labelled text; mend that first")
    calls = [[c["name"], c["arguments"]] for c in label["calls"]]
    failed = bool(label["stream_error"]) if "stream_error" in label else reading.failed
    # No API has a call without a name.
    failed = failed or reading.finish in ("error", "cut", None) or not all(name for name, _ in calls)
    in_text = [tagged.text, tagged.ordered(), finish_of(tagged, tagged.ordered())]
    if in_text[:2] == [reading.text, reading.ordered()] and not label.get("dialect"):
        in_text = None
    return Truth(label["id"], label["api"], model_of(label), tools_of(label), reading.text, reading.refusal, reading.summary, calls, finish_of(reading, calls), reading.usage, failed, in_text)


def finish_of(reading, calls):
    """The reason as it has to be: calls that came make `tool_calls` of `stop`, and with a call that was cut the answer was cut."""
    if reading.finish not in ("stop", "tool_calls"):
        return reading.finish
    if any(arguments is None for _, arguments in calls):
        return "length"
    return "tool_calls" if calls else "stop"
