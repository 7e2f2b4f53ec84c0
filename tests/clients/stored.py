#!/usr/bin/env python3
"""Answers that tc-serve keeps, by the official clients of OpenAI and its Agents SDK: chains with calls, streams that go on behind every event,
answers in the background, cancelling, deleting, and conversations.

usage: stored.py BIN [--turns N]

A model of this script calls its tool once for each question and then answers. N turns are chained without a pause, each with a call (1000); how long
the first and the last of them take is printed. Exits 1 when a client does not get what it should.
"""
import argparse, asyncio, http.server, json, os, subprocess, sys, tempfile, threading, time
import agents, openai
from openai.lib._parsing._responses import parse_response
from servers import NODE, here, installed, start_server

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, "strict": False}


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the tool after a message of the user, if there is one, and tells after a result how many messages it got."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, go_on = True, threading.Event()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        messages = [message for message in body["messages"] if message["role"] != "system"]
        count = len(messages)
        if body.get("tools") and messages[-1]["role"] == "user":
            call = {"index": 0, "id": f"call_{count}", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":'}}
            self.chunk({"role": "assistant", "tool_calls": [call]})
            self.chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]})
            self.chunk({}, "tool_calls")
        else:
            self.chunk({"role": "assistant", "content": f"{count} messages"})
            if body["model"] == "waits":
                Model.go_on.wait(60)
            self.chunk({"content": ", the last of them: " + text_of(messages[-1])})
            self.chunk({}, "stop")
        self.line({"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": 1, "total_tokens": count + 1}})
        self.send(b"data: [DONE]\n\n")
        self.send(b"")

    def chunk(self, delta, finish=None):
        self.line({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def line(self, members):
        self.send(f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm', **members})}\n\n".encode())

    def send(self, data):
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        except ConnectionError:
            self.close_connection = True

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that closes its connection is no error of the mock."""


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def result(response):
    """The results of the calls of a response."""
    return [{"type": "function_call_output", "call_id": item.call_id, "output": "4 degrees"} for item in response.output if item.type == "function_call"]


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r}, not {wanted!r}")


def refused(call, kind, code=None):
    try:
        call()
    except kind as error:
        return same(error.code, code or error.code)
    raise AssertionError(f"{kind.__name__} was not raised")


def chain(client):
    first = client.responses.create(model="m", input="Weather?", tools=[TOOL], metadata={"a": "b"})
    same((first.status, first.store, [item.type for item in first.output]), ("completed", True, ["function_call"]))
    second = client.responses.create(model="m", input=result(first), tools=[TOOL], previous_response_id=first.id)
    same((second.output_text, second.previous_response_id), ("3 messages, the last of them: 4 degrees", first.id))
    same([item.type for item in client.responses.input_items.list(second.id)], ["function_call_output"])
    same([item.call_id for item in client.responses.input_items.list(second.id)], [first.output[0].call_id])
    same([client.responses.retrieve(one.id) for one in (first, second)], [first, second])
    client.responses.delete(second.id)
    refused(lambda: client.responses.retrieve(second.id), openai.NotFoundError)
    refused(lambda: client.responses.create(model="m", input="x", previous_response_id=second.id), openai.NotFoundError, "previous_response_not_found")
    # An older response goes on in a fork.
    third = client.responses.create(model="m", input=result(first), previous_response_id=first.id)
    same(third.output_text, second.output_text)


def streams(client):
    for tools in ([], [TOOL]):
        events = list(client.responses.create(model="m", input="Weather?", tools=tools, stream=True))
        id = events[0].response.id
        same({event.response.id for event in events if hasattr(event, "response")}, {id})
        same([event.sequence_number for event in events], list(range(len(events))))
        same(list(client.responses.retrieve(id, stream=True)), events)
        for after in range(len(events)):
            same(list(client.responses.retrieve(id, stream=True, starting_after=after)), events[after + 1 :])
        # The helper reads a stream that was begun elsewhere.
        for after in range(len(events)):
            with client.responses.stream(response_id=id, starting_after=after) as stream:
                numbers = [event.sequence_number for event in stream]
                same(numbers, list(range(after + 1, len(events))))
                same(stream.get_final_response().to_dict(), parse_response(text_format=openai.omit, input_tools=openai.omit, response=events[-1].response).to_dict())


def background(client):
    Model.go_on.clear()
    first = client.responses.create(model="waits", input="Hi", background=True)
    same((first.status, first.background), ("queued", True))
    stream = client.responses.create(model="waits", input="Hi", background=True, stream=True)
    begun = []
    for event in stream:
        begun.append(event)
        if event.type == "response.output_text.delta":
            break
    stream.close()
    id = begun[0].response.id
    same(client.responses.retrieve(id).status, "in_progress")
    follower = client.responses.retrieve(id, stream=True, starting_after=begun[-1].sequence_number)
    Model.go_on.set()
    rest = list(follower)
    same((rest[-1].type, rest[-1].response.status), ("response.completed", "completed"))
    same(list(client.responses.retrieve(id, stream=True)), begun + rest)
    while first.status in ("queued", "in_progress"):
        first = client.responses.retrieve(first.id)
    same((first.status, first.output_text), ("completed", "1 messages, the last of them: Hi"))
    same(client.responses.cancel(first.id), first)
    Model.go_on.clear()
    second = client.responses.create(model="waits", input="Hi", background=True)
    cancelled = client.responses.cancel(second.id)
    same(cancelled.status, "cancelled")
    same(client.responses.cancel(second.id), cancelled)
    Model.go_on.set()
    refused(lambda: client.responses.create(model="m", input="Hi", background=True, store=False), openai.BadRequestError)


def conversations(client):
    conversation = client.conversations.create(metadata={"a": "b"}, items=[{"role": "user", "content": "I am Ann."}])
    same(client.conversations.retrieve(conversation.id), conversation)
    answered = client.responses.create(model="m", input="Who am I?", conversation=conversation.id)
    same((answered.conversation.id, answered.output_text), (conversation.id, "2 messages, the last of them: Who am I?"))
    added = client.conversations.items.create(conversation.id, items=[{"type": "message", "role": "user", "content": "Bye."}])
    items = list(client.conversations.items.list(conversation.id, order="asc", limit=1))
    same(["".join(part.text for part in item.content) for item in items], ["I am Ann.", "Who am I?", answered.output_text, "Bye."])
    same(items[-1].id, added.data[0].id)
    same(list(client.conversations.items.list(conversation.id)), items[::-1])
    same(client.conversations.items.retrieve(items[1].id, conversation_id=conversation.id), items[1])
    same(client.conversations.update(conversation.id, metadata={"c": "d"}).metadata, {"c": "d"})
    refused(lambda: client.conversations.items.delete(items[0].id, conversation_id=conversation.id), openai.APIStatusError)
    same(client.conversations.delete(conversation.id).deleted, True)
    refused(lambda: client.conversations.retrieve(conversation.id), openai.NotFoundError)


def agents_sdk(client):
    """The loop of the Agents SDK, with the history at the server in both of its ways."""
    model = agents.OpenAIResponsesModel(model="m", openai_client=openai.AsyncOpenAI(base_url=str(client.base_url), api_key="none", max_retries=0))

    @agents.function_tool
    def get_weather(city: str) -> str:
        return f"{city}: 4 degrees"

    agent = agents.Agent(name="weather", model=model, tools=[get_weather])

    async def run():
        first = await agents.Runner.run(agent, "Weather?", auto_previous_response_id=True)
        same(first.final_output, "3 messages, the last of them: Oslo: 4 degrees")
        second = await agents.Runner.run(agent, "And now?", previous_response_id=first.last_response_id, auto_previous_response_id=True)
        same(second.final_output, "7 messages, the last of them: Oslo: 4 degrees")
        session = agents.OpenAIConversationsSession(openai_client=model._client)
        for turn in range(3):
            answered = await agents.Runner.run(agent, f"Weather {turn}?", session=session)
            same(answered.final_output, f"{4 * turn + 3} messages, the last of them: Oslo: 4 degrees")
        same(len(await session.get_items()), 12)
        same((await session.pop_item())["content"][0]["text"], answered.final_output)
        same(len(await session.get_items()), 11)
        conversation = client.conversations.create()
        for turn in range(2):
            answered = await agents.Runner.run(agent, f"Weather {turn}?", conversation_id=conversation.id)
            same(answered.final_output, f"{4 * turn + 3} messages, the last of them: Oslo: 4 degrees")
        await session.clear_session()

    agents.set_tracing_disabled(True)
    asyncio.run(run())


def node(client):
    """The client for Node.js."""
    base = str(client.base_url)
    ran = subprocess.run([NODE, os.path.join(here, "stored.mjs"), base], capture_output=True, text=True, env={**os.environ, "CLIENTS": installed})
    if ran.returncode:
        raise AssertionError(ran.stderr.strip() or ran.stdout.strip())


def approvals(client):
    """The service runs the tool once the client has approved the call in its next request."""
    asks = client.with_options(default_headers={"x-toolpipe-pending": "end"})
    for approve, said in (True, "4 degrees"), (False, "refused the call"):
        first = asks.responses.create(model="m", input="Weather?")
        request = first.output[-1]
        same((first.status, request.type, request.name), ("completed", "mcp_approval_request", "get_weather"))
        answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        with client.responses.stream(model="m", input=[answer], previous_response_id=first.id) as stream:
            kinds = [event.type for event in stream]
            second = stream.get_final_response()
        ended = "response.mcp_call.completed" if approve else "response.mcp_call.failed"
        if ended not in kinds or said not in second.output_text:
            raise AssertionError(f"{ended} or {said!r} is missing: {kinds} {second.output_text!r}")
        same([item.type for item in second.output], ["mcp_call", "message"])
        refused(lambda: client.responses.create(model="m", input=[answer], previous_response_id=second.id), openai.BadRequestError)


def many_turns(client, turns):
    """Chained turns with a call each, as fast as the client goes."""
    last, times = None, []
    for turn in range(turns):
        began = time.monotonic()
        called = client.responses.create(model="m", input=f"Weather {turn}?", tools=[TOOL], previous_response_id=last)
        last = client.responses.create(model="m", input=result(called), tools=[TOOL], previous_response_id=called.id)
        same(last.output_text, f"{4 * turn + 3} messages, the last of them: 4 degrees")
        last = last.id
        times.append(time.monotonic() - began)
    part = max(1, turns // 10)
    first, end = (1000 * sum(some) / len(some) for some in (times[:part], times[-part:]))
    print(f"{turns} turns with a call in {sum(times):.1f} s: the first {part} took {first:.1f} ms each, the last {part} {end:.1f} ms, the slowest {1000 * max(times):.0f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--turns", type=int, default=1000)
    o = parser.parse_args()
    provider = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    checks = [chain, streams, background, conversations, agents_sdk, node, lambda client: many_turns(client, o.turns)]
    count = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        own = TOOL["name"], TOOL["parameters"], {"command": ["printf", "4 degrees"], "class": "danger"}
        with open(f"{folder}/tools.json", "w") as file:
            json.dump([dict(zip(("name", "parameters", "exec"), own))], file)
        for options, some in ([], checks), (["--tools", f"{folder}/tools.json"], [approvals]):
            server, base = start_server(o.bin, "openai-chat", f"http://127.0.0.1:{provider.server_port}", "stored", "--sessions", f"{folder}/sessions", *options)
            try:
                client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
                for check in some:
                    count += 1
                    try:
                        check(client)
                    except (AssertionError, openai.OpenAIError, agents.AgentsException) as error:
                        print(f"{check.__name__}: {error}")
                        failed += 1
            finally:
                server.kill()
    print(f"{count} checks of stored answers, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
