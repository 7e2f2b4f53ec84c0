#!/usr/bin/env python3
"""Runs the tool loops of the official clients through tc-serve before a model that calls a tool twice.

usage: threads.py BIN

Anthropic's `tool_runner` (Python and TypeScript) asks its server to keep the conversation (`thread`), and then sends the new result alone.
tc-serve keeps none: it answers with `thread_not_found`, on which the client sends all of the conversation. Each loop has to end with the
model's answer, each tool runs once for each call, and the model must never be asked without the question or with a result whose call is
missing. The same for `previous_response_id` of OpenAI's client, whose error has to have OpenAI's code. Exits 1 when a loop is wrong.
"""
import http.server, json, os, subprocess, sys, threading
from servers import NODE, here, installed, start_server
import anthropic, openai

QUESTION, ANSWER = "Is it colder in Paris or in Rome?", "It is colder in Paris."
CITIES = ["Paris", "Rome"]


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the tool for each city, then answers. It speaks chat completions and Messages, and passes over `thread` as other servers do."""
    protocol_version, wrong = "HTTP/1.1", []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_chat = self.path.endswith("/chat/completions")
        calls, results, text = (chat if is_chat else messages)(body["messages"])
        if QUESTION not in text or not set(results) <= set(calls):
            Model.wrong.append(f"{self.path}: the model was asked {json.dumps(body['messages'])[:500]}")
        city = CITIES[len(results)] if len(results) < len(CITIES) else None
        events = (chat_answer if is_chat else messages_answer)(f"call_{len(results)}", city)
        data = "".join(f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events)
        data = (data + "data: [DONE]\n\n" if is_chat else data).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def chat(messages):
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    return calls, [m["tool_call_id"] for m in messages if m["role"] == "tool"], json.dumps(messages)


def messages(messages):
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    of = lambda kind, key: [block[key] for block in blocks if block["type"] == kind]
    return of("tool_use", "id"), of("tool_result", "tool_use_id"), json.dumps(messages)


def chat_answer(id, city):
    call = {"index": 0, "id": id, "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    delta = {"role": "assistant", **({"tool_calls": [call]} if city else {"content": ANSWER})}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls" if city else "stop"}]},
        {"id": "chatcmpl-1", "choices": [], "usage": usage},
    ]


def messages_answer(id, city):
    start = {"type": "tool_use", "id": id, "name": "get_weather", "input": {}} if city else {"type": "text", "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps({"city": city})} if city else {"type": "text_delta", "text": ANSWER}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [
        {"type": "message_start", "message": {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if city else "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]


def python_loop(base, is_stream):
    """The cities for which the tool ran, and the answer."""
    ran = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        ran.append(city)
        return f"{city}: 4 degrees"

    client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
    # A loop that gets nowhere ends.
    runner = client.beta.messages.tool_runner(
        max_iterations=9, model="m", max_tokens=99, tools=[get_weather], messages=[{"role": "user", "content": QUESTION}], **({"stream": True} if is_stream else {}))
    last = None
    for turn in runner:
        last = turn.get_final_message() if is_stream else turn
    return [ran, "".join(block.text for block in last.content if block.type == "text")]


def javascript_loop(base, is_stream):
    loop = [NODE, os.path.join(here, "threads.mjs"), base, json.dumps(is_stream), QUESTION]
    return json.loads(subprocess.run(loop, stdout=subprocess.PIPE, check=True, env={**os.environ, "CLIENTS": installed}).stdout)


def openai_refused(base, _):
    """The code of the error of a request that refers to an earlier answer."""
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    first = client.responses.create(model="m", input=QUESTION)
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "4 degrees"}
    try:
        client.responses.create(model="m", previous_response_id=first.id, input=[result])
    except openai.BadRequestError as error:
        return [error.code, error.param]


def main(bin):
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    upstream, wrong, count = f"http://127.0.0.1:{model.server_port}", Model.wrong, 0
    for api in ("openai-chat", "anthropic"):
        server, base = start_server(bin, api, upstream, f"threads-{api}")
        try:
            for loop, want in ((python_loop, [CITIES, ANSWER]), (javascript_loop, [CITIES, ANSWER]), (openai_refused, ["previous_response_not_found", "previous_response_id"])):
                for is_stream in (False, True):
                    found = loop(base, is_stream)
                    count += 1
                    if found != want:
                        wrong.append(f"{api} {loop.__name__} stream {is_stream}: {found}, not {want}")
        finally:
            server.kill()
    model.shutdown()
    print("\n".join([*wrong, f"{count} loops of official clients, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
