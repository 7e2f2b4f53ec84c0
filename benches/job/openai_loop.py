# The job with openai-python: openai_loop.py BASE MODEL. The client assembles the calls; the loop is ours, since it has none.
import json, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI

base, model = sys.argv[1:]
client = OpenAI(base_url=base)
tools = [{"type": "function", "function": {"name": "t", "description": "A tool.", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}}]
messages = [{"role": "user", "content": "go"}]


def run(call):
    n = json.loads(call.function.arguments)["n"]
    done = subprocess.run(["/bin/echo", f"done: {n}"], capture_output=True, text=True)
    return {"role": "tool", "tool_call_id": call.id, "content": done.stdout}


while True:
    with client.chat.completions.stream(model=model, messages=messages, tools=tools) as stream:
        for event in stream:
            if event.type == "content.delta":
                print(event.delta, end="", flush=True)
        message = stream.get_final_completion().choices[0].message
    if not message.tool_calls:
        break
    messages.append({"role": "assistant", "content": message.content, "tool_calls": [c.to_dict() for c in message.tool_calls]})
    with ThreadPoolExecutor() as pool:
        messages += pool.map(run, message.tool_calls)
