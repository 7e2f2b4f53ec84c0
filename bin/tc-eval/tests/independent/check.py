#!/usr/bin/env python3
"""Computes every number of a report of tc-eval from its list of answers, with other libraries, and compares.

    check.py REPORT.json LIST.ndjson [--index INDEX.ndjson] [--baseline BASELINE.ndjson]

REPORT.json is what `tc-eval CORPUS --format json` wrote, LIST.ndjson what `tc-eval CORPUS --list` wrote of the same corpus. The
labels are compared with INDEX.ndjson, and the changes since BASELINE.ndjson with the `baseline` of the report. Prints each number that
differs and ends with 1 if there is any. Needs numpy, scikit-learn, scipy and statsmodels.
"""
import argparse
import collections
import json
import math
import sys

import numpy
import sklearn.metrics
from scipy.stats import t
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

compared = 0
wrong = []


def same(name, found, expected, relative=1e-9):
    """Notes a difference between a number of the report and the one computed here."""
    global compared
    compared += 1
    if found is None or expected is None or isinstance(found, (str, bool, list)):
        equal = found == expected
    else:
        equal = math.isclose(found, expected, rel_tol=relative, abs_tol=1e-9)
    if not equal:
        wrong.append(f"{name}: the report has {found}, computed {expected}")


def share(part, whole):
    return part / whole if whole else None


def quantiles(name, metrics, values, unit=1):
    """Exact below 128 units, else within 1/128 (the buckets of the report)."""
    for key, percent in (("p50", 50), ("p90", 90), ("p99", 99)):
        metric = f"{name}.{key}"
        if not values:
            same(metric, metrics[metric], None)
            continue
        exact = float(numpy.percentile(values, percent, method="inverted_cdf"))
        same(metric, metrics[metric] * unit, exact, 1e-9 if exact < 128 else 1 / 128)
    same(f"{name}.max", metrics[f"{name}.max"], max(values) / unit if values else None)


def hashed(source):
    """FNV-1a of 64 bits, mixed by the last step of MurmurHash3."""
    value = 0xCBF29CE484222325
    for byte in source.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD % 2**64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return value ^ value >> 33


def interval(hits, sources, groups):
    """Wilson's interval with the effective number of streams of Korn and Graubard; `groups` random groups of sources, None: each source
    is one."""
    hits = numpy.array(hits, dtype=float)
    n, p = len(hits), hits.mean()
    names = [hashed(source) % groups for source in sources] if groups else sources
    cluster = numpy.unique(names, return_inverse=True)[1]
    x = numpy.bincount(cluster).astype(float)
    y = numpy.bincount(cluster, weights=hits)
    if p in (0, 1) or len(x) < 2:
        squares = (x**2).sum()
        if groups:
            squares = max(n, min(squares, (groups * squares - n**2) / (groups - 1)))
        effective = n**2 / squares
    else:
        variance = len(x) / (len(x) - 1) * ((y - p * x) ** 2).sum() / n**2
        design = variance / (p * (1 - p) / (n - 1))
        few = t.ppf(0.975, n - 1) / t.ppf(0.975, len(x) - 1)
        effective = min(n, max(1, n / design * few**2)) if variance > 0 else n
    low, high = proportion_confint(p * effective, effective, method="wilson")
    return effective, low, high


def check_shares(name, answers, metrics, intervals, groups):
    """The confusion matrix, the shares that it gives, and their intervals."""
    decided = [a for a in answers if a["answer"] != "undecided"]
    truth = [a["has_tool_call"] for a in decided]
    said = [a["answer"] == "yes" for a in decided]
    (tn, fp), (fn, tp) = sklearn.metrics.confusion_matrix(truth, said, labels=[False, True]) if decided else ((0, 0), (0, 0))
    undecided_calls = sum(a["has_tool_call"] for a in answers if a["answer"] == "undecided")
    calls = sum(a["has_tool_call"] for a in answers)
    for metric, expected in (
        ("streams", len(answers)),
        ("calls", calls),
        ("true_positives", tp),
        ("false_positives", fp),
        ("true_negatives", tn),
        ("false_negatives", fn),
        ("undecided", len(answers) - len(decided)),
        ("undecided.calls", undecided_calls),
        ("accuracy", sklearn.metrics.accuracy_score(truth, said) if decided else None),
        ("revised", sum(a["answer"] != a["last"] for a in answers)),
        ("split", sum(a["depends_on_split"] for a in answers)),
    ):
        same(f"{name} {metric}", metrics[metric], expected)
    # A call on which nothing was decided is missed.
    all_truth = [a["has_tool_call"] for a in answers]
    all_said = [a["answer"] == "yes" for a in answers]
    scores = sklearn.metrics.precision_recall_fscore_support(all_truth, all_said, average="binary", zero_division=numpy.nan)
    for metric, expected in zip(("precision", "recall", "f1"), scores):
        same(f"{name} {metric}", metrics[metric], None if math.isnan(expected) else float(expected))
    has_mcc = len(set(truth)) == 2 and len(set(said)) == 2
    same(f"{name} mcc", metrics["mcc"], float(sklearn.metrics.matthews_corrcoef(truth, said)) if has_mcc else None, 1e-7)

    for metric, rows, hit in (
        ("accuracy", decided, lambda a: (a["answer"] == "yes") == a["has_tool_call"]),
        ("precision", [a for a in decided if a["answer"] == "yes"], lambda a: a["has_tool_call"]),
        ("recall", [a for a in answers if a["has_tool_call"]], lambda a: a["answer"] == "yes"),
    ):
        if not rows:
            same(f"{name} interval of {metric}", intervals.get(metric), None)
            continue
        hits, sources = [hit(a) for a in rows], [a["source"] for a in rows]
        effective, low, high = interval(hits, sources, groups)
        for key, expected in (("effective", effective), ("low", low), ("high", high)):
            same(f"{name} {key} of {metric}", intervals[metric][key], expected, 1e-6)
        if groups == 4096:
            # Random groups of sources against each source by itself.
            _, low, high = interval(hits, sources, None)
            width = max(high - low, 1e-3)
            for key, expected in (("low", low), ("high", high)):
                if abs(intervals[metric][key] - expected) > width / 8:
                    wrong.append(f"{name} {key} of {metric}: {intervals[metric][key]}, by single sources {expected}")


def check_text(name, answers, metrics):
    """How much of the text had gone by."""
    gone = [(a["end"]["chars"] if a["chars"] is None else min(a["chars"], a["end"]["chars"]), a["end"]["chars"])
            for a in answers if not a["has_tool_call"]]
    same(f"{name} waited", metrics["waited"], share(sum(part for part, _ in gone), sum(whole for _, whole in gone)))
    shares = [part / whole for part, whole in gone if whole]
    same(f"{name} waited.stream", metrics["waited.stream"], float(numpy.mean(shares)) if shares else None, 1e-6)


def places(answers, unit):
    """The decisions, and the distances of right yeses from the first event of a call."""
    decided = [a for a in answers if a["answer"] != "undecided" and a["event"] is not None]
    right = [a for a in decided if a["answer"] == "yes" and a["has_tool_call"] and a["first_call"]]
    decision = [a[unit] for a in decided if a[unit] is not None]
    late = [max(0, a[unit] - a["first_call"][unit]) for a in right if None not in (a[unit], a["first_call"][unit])]
    if unit == "ms":
        return [[math.floor(ms * 1000 + 0.5) for ms in values] for values in (decision, late)]
    return decision, late


def check_distances(answers, metrics, units, kinds=("decision", "late")):
    for unit in units:
        metric = "events" if unit == "event" else unit
        for kind, values in zip(kinds, places(answers, unit)):
            quantiles(f"{kind}.{metric}", metrics, values, 1000 if unit == "ms" else 1)


def check_streams(name, streams, metrics):
    calls = [s["calls"] for s in streams]
    total = {key: sum(c[key] for c in calls) for key in ("expected", "read", "exact", "repaired", "incomplete")}
    calling = [s for s in streams if s["has_tool_call"]]
    for metric, expected in (
        ("streams", len(streams)),
        ("calls", len(calling)),
        ("calls.expected", total["expected"]),
        ("calls.read", total["read"]),
        ("calls.exact", share(total["exact"], total["expected"])),
        ("calls.in_order", share(sum(s["calls"]["in_order"] for s in calling), len(calling))),
        ("calls.repaired", total["repaired"]),
        ("calls.incomplete", total["incomplete"]),
    ):
        same(f"{name} {metric}", metrics[metric], expected)
    saved = [max(0, math.floor(s["saved_ms"] * 1000 + 0.5)) for s in streams if s["saved_ms"] is not None]
    quantiles("saved.ms", metrics, saved, 1000)


def check_index(path, streams):
    """The labels of the list are those of the index."""
    listed = {s["id"]: s for s in streams}
    for line in open(path, encoding="utf-8"):
        label = json.loads(line) if line.strip() else {}
        stream = listed.get(label.get("id"))
        if stream is None:
            continue
        same(f"{label['id']} has_tool_call", stream["has_tool_call"], label["has_tool_call"])
        same(f"{label['id']} calls", stream["calls"]["expected"], len(label.get("calls") or []))
        same(f"{label['id']} source", stream["source"], label.get("source") or label["id"])
        for key in ("provider", "model"):
            same(f"{label['id']} {key}", stream[key], label.get(key) or "")


def check_baseline(path, report, by_checker):
    """Each change since the baseline, and McNemar's exact test."""
    lines = [json.loads(line) for line in open(path, encoding="utf-8") if line.strip()]
    names = lines[0]["checkers"]
    before = {line["id"]: dict(zip(names, line["outcomes"])) for line in lines[1:] if "id" in line}
    for change in report["baseline"]["checkers"]:
        name, table = change["checker"], [[0, 0], [0, 0]]
        changed = 0
        for answer in by_checker[name]:
            if answer["id"] in before:
                was, now = before[answer["id"]][name]["answer"], answer["answer"]
                right = "yes" if answer["has_tool_call"] else "no"
                table[was != right][now != right] += 1
                changed += was != now
        same(f"{name} broken", change["broken"], table[0][1])
        same(f"{name} fixed", change["fixed"], table[1][0])
        same(f"{name} changed", change["changed"], changed)
        expected = mcnemar(table, exact=True).pvalue if table[0][1] + table[1][0] else 1.0
        same(f"{name} p", change["p"], float(expected), 1e-6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report")
    parser.add_argument("list")
    parser.add_argument("--index")
    parser.add_argument("--baseline")
    arguments = parser.parse_args()
    report = json.load(open(arguments.report, encoding="utf-8"))
    by_checker = collections.defaultdict(list)
    for line in open(arguments.list, encoding="utf-8"):
        answer = json.loads(line)
        by_checker[answer["checker"]].append(answer)
    streams = next(iter(by_checker.values()))

    check_streams("all", streams, report["streams"])
    same("checkers", [checker["name"] for checker in report["checkers"]], list(by_checker))
    for checker in report["checkers"]:
        name, answers, metrics = checker["name"], by_checker[checker["name"]], checker["metrics"]
        check_shares(name, answers, metrics, checker["intervals"], 4096)
        check_text(name, answers, metrics)
        check_distances(answers, metrics, ("event", "chars", "bytes", "ms"))
        ids = sorted((a["corpus"].encode(), a["id"].encode()) for a in answers if a["has_tool_call"] and a["answer"] != "yes")
        shown = [(s["corpus"].encode(), s["id"].encode()) for s in checker["missed"]]
        same(f"{name} missed streams", shown, ids[: len(shown)])
        counts = checker["confusion"]
        same(f"{name} confusion", sum(counts.values()), len(answers))

    for group in report["groups"]:
        by, name = group["by"], group["name"]
        if name == "(other)":
            continue
        value = "" if name == "(unknown)" else name
        inside = (lambda a: value in a["tags"]) if by == "tag" else (lambda a: a[by] == value)
        check_streams(f"{by}={name}", [s for s in streams if inside(s)], group["streams"])
        for checker in group["checkers"]:
            answers = [a for a in by_checker[checker["name"]] if inside(a)]
            words = f"{checker['name']} {by}={name}"
            check_shares(words, answers, checker["metrics"], checker["intervals"], 32)
            check_text(words, answers, checker["metrics"])
            check_distances(answers, checker["metrics"], ("chars",), ("decision",))
    if arguments.index:
        check_index(arguments.index, streams)
    if arguments.baseline:
        check_baseline(arguments.baseline, report, by_checker)

    for line in wrong[:50]:
        print(line)
    print(f"{compared} numbers compared, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
