#!/usr/bin/env python3
"""A provider that answers every request with a recorded body: the model's name says which.

usage: mock.py INDEX…

Each INDEX is a file of labels (fixtures/index.ndjson or one in its form) beside the bodies that it names. A model is the `id` of a label,
with `--` for `/`. The port is printed on the first line of standard output; the server ends with its standard input.
"""
import asyncio, json, os, re, sys, urllib.parse

TYPES = {".sse": "text/event-stream", ".ndjson": "application/x-ndjson", ".json": "application/json"}


def model_of(label):
    return label["id"].replace("/", "--")


def status_of(body):
    """The status of a body that is one JSON value: providers send their errors with one of 400 and above."""
    text = body.lstrip()
    if text.startswith(b"<"):
        return 502
    try:
        value = json.loads(text)
    except ValueError:
        return 200
    value = value[0] if isinstance(value, list) and value else value
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        code = value["error"].get("code")
        return code if isinstance(code, int) and 400 <= code < 600 else 400
    return 401 if isinstance(value, dict) and set(value) == {"id", "message"} else 200


def load(index, answers):
    folder = os.path.dirname(os.path.abspath(index))
    for line in open(index, encoding="utf-8"):
        label = json.loads(line)
        ending = os.path.splitext(label["file"])[1]
        if ending in TYPES and "part" not in label:
            answers[model_of(label)] = (os.path.join(folder, label["file"]), TYPES[ending])


async def serve_one(answers, reader, writer):
    """Answers the requests of one connection, one after the other."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict((k.lower(), v.strip()) for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:] if line))
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        path = urllib.parse.unquote(head.split(" ")[1])
        named = re.search(r"/models/([^:/?]+)", path)
        try:
            model = named.group(1) if named else json.loads(body)["model"]
            file, kind = answers[model]
            recorded = open(file, "rb").read()
            status = status_of(recorded)
        except (KeyError, ValueError, TypeError):
            recorded, kind, status = b'{"error":{"message":"no recording has this name","code":404}}', "application/json", 404
        kind = "text/html" if status == 502 else "application/json" if status != 200 else kind
        writer.write(f"HTTP/1.1 {status} Recorded\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        # Two pieces, split where no frame ends: a client may not count on whole frames.
        middle = len(recorded) * 2 // 3 + 1
        for piece in (recorded[:middle], recorded[middle:]):
            if piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def main(indexes):
    answers = {}
    for index in indexes:
        load(index, answers)

    async def connection(reader, writer):
        try:
            await serve_one(answers, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except KeyboardInterrupt:
        pass
