#!/usr/bin/env python3
"""Computes the metrics of logs from their events, sorted, and compares them with `tc-view --format openmetrics`.

    tests/metrics/check.py TC-VIEW GENERATED LOG...

Each LOG is checked, and as many generated ones as GENERATED says, whose numbers, names and streams are hostile. Nothing here is
taken from toolpipe: a quantile is an element of a sorted list. promtool must have nothing to say about any output.
"""
import collections
import json
import math
import random
import subprocess
import sys

LONGEST = 1000 * 86400 * 10**6
STARTS = {"stream_start", "thinking", "content_delta", "refusal_delta", "tool_call_delta", "tool_call", "error", "stream_end"}
INVALID = {"invalid_json": "invalid", "schema": "invalid", "no_name": "invalid", "incomplete": "incomplete"}
TOKENS = {"input": "prompt_tokens", "output": "completion_tokens", "cached_input": "cached_tokens", "reasoning_output": "reasoning_tokens"}


class Number(str):
    """A number as it is written."""


def events(text):
    """The events of a log, and how many of its lines are not events."""
    found, lost = [], 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_int=Number, parse_float=Number, parse_constant=lambda _: 1 / 0)
            if not isinstance(event, dict):
                raise ValueError
        except (ValueError, ZeroDivisionError):
            lost += 1
            continue
        if "type" not in event and isinstance(event.get("role"), str):
            event = {"type": "message"}
        if not isinstance(event.get("type"), str) or isinstance(event["type"], Number):
            lost += 1
            continue
        found.append(event)
    return found, lost


def micros(value):
    """A time in milliseconds as microseconds, if it can be true."""
    if not isinstance(value, Number):
        return None
    milliseconds = float(value) * 1000
    if not 0 <= milliseconds < math.inf:
        return None
    rounded = math.floor(milliseconds + 0.5)
    return rounded if rounded <= LONGEST else None


def count(value):
    """A number of tokens."""
    number = int(value) if isinstance(value, Number) and value.isdigit() else 0
    return number if number < 2**64 else 0


def word(value):
    return value if isinstance(value, str) and not isinstance(value, Number) else ""


def integer(value):
    if isinstance(value, Number) and value.lstrip("-").isdigit() and -(2**63) <= int(value) < 2**63:
        return int(value)
    return None


class Truth:
    def __init__(self, log):
        self.counts = collections.Counter()
        self.times = collections.defaultdict(list)
        self.tools = []
        self.waiting = set()
        found, lost = events(log)
        self.counts["warnings", "not_an_event"] += lost
        streams = collections.OrderedDict()
        for event in found:
            self.take(event)
            name = json.dumps(event["stream"]) if event.get("stream") is not None else None
            kind = event["type"]
            if kind == "stream_start" and name in streams:
                self.stream(streams.pop(name))
            if name in streams or kind in STARTS:
                streams.setdefault(name, []).append(event)
            elif kind == "retract":
                self.counts["retracts", word(event.get("reason"))] += 1
            if kind == "stream_end":
                self.stream(streams.pop(name))
        for stream in streams.values():
            self.stream(stream)

    def stream(self, events):
        """Counts what the events of one stream say together."""
        last = None
        for at in (micros(event.get("t")) for event in events):
            if at is not None and (last is None or at > last):
                if last is not None:
                    self.times["event_gap", ""].append(at - last)
                last = at
        named = [micros(event.get("t")) for event in events if names_call(event)]
        named = [at for at in named if at is not None]
        self.times["detection", ""] += named[:1]
        calls = []
        for event in events:
            kind = event["type"]
            if kind == "tool_call":
                error = event.get("error")
                outcome = INVALID.get(word(error.get("code")) if isinstance(error, dict) else "", "other") if error is not None else "whole"
                calls.append([choice(event), word(event.get("tool_id")), integer(event.get("index")), outcome])
            elif kind == "retract":
                reason, named_id, index = word(event.get("reason")), event.get("tool_id"), integer(event.get("index"))
                named_id = None if not isinstance(named_id, str) or isinstance(named_id, Number) else named_id
                hit = [c for c in calls if c[0] == choice(event) and (c[1] == named_id if named_id is not None else index is not None and c[2] == index)]
                # The same call by its id and by its index.
                if hit and hit[-1][3] == "retracted":
                    continue
                self.counts["retracts", reason] += 1
                if hit:
                    hit[-1][3] = "retracted"
                else:
                    self.counts["calls", "retracted"] += 1
        for *_, outcome in calls:
            self.counts["calls", outcome] += 1

    def take(self, event):
        """Counts what one event says."""
        kind = event["type"]
        if kind == "tool_use":
            name = word(event.get("tool_name"))
            if len(self.tools) < 100 and name not in self.tools and 0 < len(name.encode()) <= 128 and all(c.isalnum() or c in "_-.:/" for c in name):
                self.tools.append(name)
            self.waiting.discard((json.dumps(event.get("stream")), choice(event), word(event.get("tool_id"))))
        elif kind == "tool_result":
            status = word(event.get("status"))
            self.counts["tool_results", status] += 1
            call = (json.dumps(event.get("stream")), choice(event), word(event.get("tool_id")))
            self.waiting.add(call) if status == "pending" else self.waiting.discard(call)
            at = micros(event.get("duration_ms"))
            if at is not None and event.get("cached") is not True and event.get("resumed") is not True:
                name = word(event.get("tool_name"))
                self.times["tool_duration", (name if name in self.tools else "other", status)].append(at)
        elif kind == "session_stats":
            for name, field in TOKENS.items():
                self.counts["tokens", name] += count(event.get(field))
            self.counts["retries", ""] += count(event.get("retries"))
            if not is_u64(event.get("calls")):
                for name, field in (("first_event", "first_event_ms"), ("turn_duration", "duration_ms")):
                    at = micros(event.get(field))
                    self.times[name, ""] += [at] if at is not None else []
        elif kind == "stream_end":
            reason = word(event.get("finish_reason"))
            self.counts["streams", reason if reason in REASONS else "stop"] += 1
        elif kind == "approval":
            self.counts["approvals", word(event.get("decision"))] += 1
        elif kind in ("error", "warning"):
            self.counts[kind + "s", word(event.get("code"))] += 1
        elif kind == "tool_call":
            error = event.get("error")
            if error is not None:
                self.counts["call_errors", word(error.get("code")) if isinstance(error, dict) else ""] += 1
            repairs = event.get("repairs")
            for repair in repairs if isinstance(repairs, list) else []:
                if isinstance(repair, dict) and isinstance(repair.get("kind"), str) and not isinstance(repair["kind"], Number):
                    self.counts["repairs", repair["kind"]] += 1


REASONS = {"stop", "tool_calls", "length", "content_filter", "error", "cancelled", "cut"}


def is_u64(value):
    return isinstance(value, Number) and value.isdigit() and int(value) < 2**64


def choice(event):
    value = integer(event.get("choice"))
    return value if value is not None and 0 <= value < 2**32 else 0


def names_call(event):
    kind = event["type"]
    named = event.get("tool_name")
    return kind == "tool_call" or kind == "tool_call_delta" and word(named) != "" or kind == "decision" and event.get("tool_call") is True


def read(text):
    """The samples of a page of metrics, by name and labels."""
    samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sample, value = line.rsplit(" ", 1)
            assert sample not in samples, f"{sample} comes twice"
            samples[sample] = value
    return samples


def seconds(number):
    text = f"{number // 10**6}.{number % 10**6:06}".rstrip("0")
    return text.rstrip(".")


def compare(what, log, page):
    """The differences between a page and the truth."""
    truth, samples, wrong = Truth(log), read(page), []

    def want(sample, value):
        if samples.get(sample) != str(value):
            wrong.append(f"{what}: {sample} is {samples.get(sample)}, not {value}")

    known = collections.defaultdict(set)
    for sample in samples:
        family, _, labels = sample.partition("{")
        if family.endswith("_total") and labels:
            known[family].add(labels.split('"')[1])
    counts = collections.Counter()
    for (family, label), number in truth.counts.items():
        family = f"toolpipe_{family}_total"
        if label.startswith("http_") and len(label) == 8 and label[5] in "45" and label[5:].isdigit():
            label = label[:6] + "xx"
        counts[family, label if label in known[family] else "other"] += number
    for family, labels in known.items():
        name = {"calls": "outcome", "retracts": "reason", "streams": "reason", "repairs": "kind", "approvals": "decision", "tool_results": "status"}
        name = name.get(family[len("toolpipe_"):-len("_total")], "code")
        for label in labels:
            want(f'{family}{{{name}="{label}"}}', counts[family, label])
    for name in TOKENS:
        want(f"toolpipe_{name}_tokens_total", min(truth.counts["tokens", name], 2**64 - 1))
    want("toolpipe_retries_total", min(truth.counts["retries", ""], 2**64 - 1))
    want("toolpipe_approvals_waiting", len(truth.waiting))
    statuses = known["toolpipe_tool_results_total"]
    series = collections.defaultdict(list)
    for (family, labels), times in truth.times.items():
        if labels:
            tool, status = labels
            labels = f'tool="{tool}",status="{status if status in statuses else "other"}"'
        series[f"toolpipe_{family}_seconds", labels] += times
    for family in ("detection", "first_event", "event_gap", "turn_duration"):
        series.setdefault((f"toolpipe_{family}_seconds", ""), [])
    for (family, labels), times in series.items():
        times = sorted(times)
        for quantile in ("0.5", "0.95", "0.99") if times else ():
            rank = -(-len(times) * int(float(quantile) * 1000) // 1000)
            comma = "," if labels else ""
            want(f'{family}{{{labels}{comma}quantile="{quantile}"}}', seconds(times[max(rank, 1) - 1]))
        labels = f"{{{labels}}}" if labels else ""
        want(f"{family}_sum{labels}", seconds(sum(times)))
        want(f"{family}_count{labels}", len(times))
    numbers = sum(1 for sample in samples if sample.startswith("toolpipe_tool_duration_seconds_count"))
    if numbers != sum(1 for family, labels in series if labels):
        wrong.append(f"{what}: {numbers} series of tools")
    if not page.endswith("\n# EOF\n"):
        wrong.append(f"{what}: the end is missing")
    return wrong


def generated(seed):
    """A log whose events are odd."""
    dice = random.Random(seed)
    pick = dice.choice
    numbers = ["-1", "1e999", "-1e999", "1e300", "18446744073709551616", "18446744073709551615", "9e-5", "null", '"12"', "true", "[1]", "{}", "0.0004", "86400000000", "86400000001", "-0"]
    names = ["search", "übersetzen", "a b", 'x"} 1', "", "../..", "n" * 129, "other"] + [f"made_up_{n}" for n in range(dice.choice([3, 300]))]
    at = collections.Counter()
    calls = collections.defaultdict(list)

    def number(good):
        return pick(numbers) if dice.random() < 0.1 else good

    def common(stream, choice):
        at[stream] += dice.choice([0, 0, 1, 7, 40, 1500]) + dice.random()
        time = number(f"{at[stream]:.{dice.randrange(7)}f}")
        return f'"stream":{json.dumps(stream)},' * (stream != "") + f'"t":{time},' * (dice.random() < 0.9) + '"choice":1,' * choice

    lines = []
    for _ in range(dice.choice([0, 3, 400, 3000])):
        stream = pick(["", "", "a", "b\n"])
        # An id and a place name one call of a stream.
        new = len(lines)
        choice = dice.random() < 0.1
        of = calls[stream, choice]
        call = json.dumps(f"c{pick(of)}" if of and dice.random() < 0.7 else pick(["u1", "u2"]))
        held = json.dumps(f"c{pick(of)}" if of and dice.random() < 0.7 else "begun")
        place = pick(of) if of and dice.random() < 0.7 else -1
        name = json.dumps(pick(names))
        body = pick([
            lambda: f'"type":"stream_start","v":1',
            lambda: f'"type":"content_delta","text":"x"',
            lambda: f'"type":"content_delta","text":"x"',
            lambda: f'"type":"thinking","text":"x"',
            lambda: f'"type":"tool_call_delta","index":-2,"tool_name":{name}',
            lambda: f'"type":"tool_call_delta","index":-2,"arguments":"x"',
            lambda: f'"type":"decision","tool_call":{pick(["true", "false"])},"checker":"x"',
            lambda: f'"type":"tool_call","index":{new},"tool_id":"c{new}","tool_name":{name},"arguments":{{}},"repairs":[{{"kind":"{pick(["escape", "fence", "novel"])}"}},1,{{}}]',
            lambda: f'"type":"tool_call","index":{new},"tool_id":"c{new}","tool_name":{name},"error":{{"code":"{pick(["incomplete", "schema", "invalid_json", "no_name", "novel"])}"}}',
            lambda: f'"type":"retract","tool_id":{held},"reason":"{pick(["unparsed", "stream_failed", "novel"])}"',
            lambda: f'"type":"retract","index":{place},"reason":"{pick(["unparsed", "reasoning"])}"',
            lambda: f'"type":"tool_use","tool_id":{call},"tool_name":{name},"status":"running"',
            lambda: f'"type":"tool_progress","tool_id":{call},"progress":{number("0.5")}',
            lambda: f'"type":"tool_result","tool_id":{call},"tool_name":{name},"status":"{pick(["success", "error", "pending", "denied", "novel"])}","duration_ms":{number(str(dice.expovariate(0.01)))}'
            + pick(["", "", ',"cached":true', ',"resumed":true']),
            lambda: f'"type":"session_stats","prompt_tokens":{number(str(dice.randrange(9999)))},"completion_tokens":{number("5")},"cached_tokens":{number("3")},"reasoning_tokens":{number("2")}'
            f',"retries":{number("1")},"first_event_ms":{number(str(dice.random() * 900))},"duration_ms":{number("1234.5678")}' + pick(["", "", ',"calls":3']),
            lambda: f'"type":"approval","tool_id":{call},"decision":"{pick(["approved", "denied", "answered", "novel"])}"',
            lambda: f'"type":"error","code":"{pick(["context_overflow", "http_404", "http_503", "http_999", "secret"])}"',
            lambda: f'"type":"warning","code":"{pick(["index_inferred", "secret"])}"',
            lambda: f'"type":"stream_end","finish_reason":"{pick(["stop", "tool_calls", "cut", "novel"])}"',
            lambda: f'"type":"novel","tool_name":{name}',
        ])()
        lines.append("{" + common(stream, choice) + body + "}")
        if '"stream_' in body:
            calls[stream, False], calls[stream, True] = [], []
        elif '"tool_call",' in body:
            of.append(new)
        if dice.random() < 0.01:
            lines.append(pick(["{", '{"t":NaN}', "[]", '{"type":7}', '{"role":"user","content":"x"}']))
    return "\n".join(lines) + "\n"


def main():
    program, number, *logs = sys.argv[1:]
    pages = [(log, open(log, encoding="utf-8", newline="\n").read()) for log in logs]
    pages += [(f"generated {seed}", generated(seed)) for seed in range(int(number))]
    wrong = []
    for what, log in pages:
        ran = subprocess.run([program, "--format", "openmetrics"], input=log.encode(), capture_output=True)
        page = ran.stdout.decode()
        wrong += compare(what, log, page)
        linted = subprocess.run(["promtool", "check", "metrics"], input=ran.stdout, capture_output=True)
        if linted.returncode or linted.stdout or linted.stderr:
            wrong.append(f"{what}: promtool: {(linted.stdout + linted.stderr).decode()[:500]}")
    # The comparison is not blind: each sample that is changed is noticed.
    noticed = blind = 0
    what, log = max(pages, key=lambda page: len(page[1]) * page[0].startswith("generated"))
    page = subprocess.run([program, "--format", "openmetrics"], input=log.encode(), capture_output=True).stdout.decode()
    for line in page.splitlines():
        if not line.startswith("#") and "_rounded" not in line:
            changed = page.replace(line + "\n", line + "1\n", 1)
            noticed, blind = (noticed + 1, blind) if compare(what, log, changed) else (noticed, blind + 1)
    if blind:
        wrong.append(f"{blind} of {noticed + blind} changes were not noticed")
    print("\n".join(wrong[:40] or [f"{len(pages)} logs, {noticed} changes noticed"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
