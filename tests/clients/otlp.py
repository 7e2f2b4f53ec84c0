#!/usr/bin/env python3
"""Reads the traces of fixtures/ with OpenTelemetry's own protobuf definitions.

    otlp.py target/release            each field of each line has to be one of the definitions, and to have its type
    otlp.py target/release URL        and each line is posted as protobuf to URL/v1/traces, such as that of Phoenix
"""

import base64
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def as_protobuf(value):
    """OTLP writes ids in hexadecimal, where the JSON of protobuf has base64."""
    if isinstance(value, list):
        return [as_protobuf(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, member in value.items():
        if key in IDS:
            raw = bytes.fromhex(member)
            assert len(raw) == IDS[key] and any(raw) and member == member.lower(), (key, member)
            member = base64.b64encode(raw).decode()
        made[key] = as_protobuf(member)
    return made


def check(line):
    data = json_format.ParseDict(as_protobuf(json.loads(line)), TracesData(), ignore_unknown_fields=False)
    spans = [span for resource in data.resource_spans for scope in resource.scope_spans for span in scope.spans]
    ids = {span.span_id for span in spans}
    assert spans and len(ids) == len(spans) and len({span.trace_id for span in spans}) == 1
    for n, span in enumerate(spans):
        keys = [attribute.key for attribute in span.attributes]
        assert len(set(keys)) == len(keys), keys
        assert "gen_ai.operation.name" in keys
        assert n == 0 or span.parent_span_id in ids
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.kind in (Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CLIENT)
        assert (span.status.code == Status.STATUS_CODE_ERROR) == ("error.type" in keys), keys
        assert span.kind != Span.SPAN_KIND_CLIENT or "gen_ai.provider.name" in keys
    return data


def main():
    bin, url = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    root = Path(__file__).resolve().parents[2] / "fixtures"
    logs = sorted([*root.glob("traces/*.ndjson"), *root.glob("logs/*.ndjson"), *root.glob("views/*/in.ndjson")])
    lines = 0
    for log in logs:
        for options in [], ["--contents"]:
            command = [bin / "tc-view", "--format", "otlp", *options, log]
            # 2: the log has an `error` event.
            out = subprocess.run(command, check=False, capture_output=True, text=True)
            assert out.returncode in (0, 2), (log, out.stderr)
            for line in out.stdout.splitlines():
                data = check(line)
                lines += 1
                if url and options:
                    request = ExportTraceServiceRequest(resource_spans=data.resource_spans)
                    body = request.SerializeToString()
                    headers = {"content-type": "application/x-protobuf"}
                    posted = urllib.request.Request(url + "/v1/traces", body, headers)
                    with urllib.request.urlopen(posted, timeout=30) as answer:
                        assert answer.status == 200, answer.status
    assert lines > len(logs), lines
    print(f"{lines} lines of {len(logs)} logs are as OpenTelemetry defines them")


main()
