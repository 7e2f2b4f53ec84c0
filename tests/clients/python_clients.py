#!/usr/bin/env python3
"""Asks servers with the official Python clients: a job a line on standard input, its result a line on standard output.

A job is {id, client, front, form, base, model, tools}; `form` is `stream` or `whole`. A result is the job's id, client, front and form with
what the client returned: {text, reasoning, calls: [[id, name, arguments as JSON text]], finish, usage: {input, output, total}}, or {error}.
"""
import asyncio, collections, json, sys, time
import anthropic, openai

ASK = "What is to be done?"
clients = {}


def client_of(kind, base):
    """One client a server, so that connections are used again."""
    if (kind, base) not in clients:
        if kind == "anthropic":
            clients[kind, base] = anthropic.AsyncAnthropic(base_url=base, api_key="none", max_retries=0, timeout=60)
        else:
            clients[kind, base] = openai.AsyncOpenAI(base_url=base + "/v1", api_key="none", max_retries=0, timeout=60)
    return clients[kind, base]


async def chat(job):
    client = client_of("openai", job["base"])
    tools = [{"type": "function", "function": tool} for tool in job["tools"]]
    request = {"model": job["model"], "messages": [{"role": "user", "content": ASK}], **({"tools": tools} if tools else {})}
    if job["form"] == "stream":
        async with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            try:
                async for _ in stream:
                    pass
                answer = await stream.get_final_completion()
            # So this client reports an answer that was cut; it has kept what came.
            except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
                answer = stream.current_completion_snapshot
    else:
        answer = await client.chat.completions.create(**request)
    choice, usage = answer.choices[0], answer.usage
    message = choice.message
    extra = message.model_extra or {}
    return {
        "text": message.content or "",
        "refusal": message.refusal or "",
        "reasoning": extra.get("reasoning_content") or extra.get("reasoning") or "",
        "calls": [[c.id, c.function.name, c.function.arguments] for c in message.tool_calls or []],
        "finish": choice.finish_reason,
        "usage": usage and {"input": usage.prompt_tokens, "output": usage.completion_tokens, "total": usage.total_tokens},
    }


async def responses(job):
    client = client_of("openai", job["base"])
    tools = [{"type": "function", "strict": False, **tool} for tool in job["tools"]]
    request = {"model": job["model"], "input": ASK, **({"tools": tools} if tools else {})}
    if job["form"] == "stream":
        answer, streamed, done = None, collections.defaultdict(str), {}
        async with client.responses.stream(**request) as stream:
            async for event in stream:
                if event.type in ("response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta"):
                    streamed[event.item_id] += event.delta
                elif event.type == "response.output_item.done":
                    done[event.item.id] = event.item
                # The client's own get_final_response raises on an answer that is incomplete.
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    answer = event.response
        if answer is None:
            raise RuntimeError("the stream has no last event")
        for item in answer.output:
            if item.type in ("message", "function_call"):
                # Recordings of others have placeholders for deltas, and a call that was cut has no done event.
                if job.get("direct") or answer.status != "completed" and item.id not in done:
                    continue
                texts = streamed[item.id], body_of(item), body_of(done[item.id])
                if len(set(texts)) > 1:
                    raise RuntimeError(f"deltas, the last event and output_item.done of an item differ: {texts}")
    else:
        answer = await client.responses.create(**request)
    if answer.status == "failed":
        raise RuntimeError(f"failed: {answer.error}")
    usage, texts = answer.usage, [p for i in answer.output if i.type == "message" for p in i.content]
    calls = [(i.call_id, i.name, i.arguments) for i in answer.output if i.type == "function_call"]
    calls += [(i.call_id, i.name, json.dumps({"input": i.input})) for i in answer.output if i.type == "custom_tool_call"]
    calls += [own_call(item.to_dict()) for item in answer.output if is_own_call(item)]
    places = {item.call_id: place for place, item in enumerate(answer.output) if item.type.endswith("_call") and hasattr(item, "call_id")}
    calls.sort(key=lambda call: places[call[0]])
    return {
        "text": "".join(p.text for p in texts if p.type == "output_text"),
        "refusal": "".join(p.refusal for p in texts if p.type == "refusal"),
        "reasoning": "".join(p.text for i in answer.output if i.type == "reasoning" for p in (i.content or i.summary or [])),
        "calls": [list(c) for c in calls],
        "finish": answer.status if answer.status == "completed" else f"{answer.status}:{answer.incomplete_details and answer.incomplete_details.reason}",
        "usage": usage and {"input": usage.input_tokens, "output": usage.output_tokens, "total": usage.total_tokens},
    }


# Calls of the API's own tools that the client runs. They have no name, and members in place of arguments.
OWN_CALLS = ("shell_call", "apply_patch_call", "computer_call")


def is_own_call(item):
    """Whether the client runs it: a shell may be in a container of the provider's."""
    environment = getattr(item, "environment", None)
    return item.type in OWN_CALLS and not (environment and environment.type.startswith("container"))


def own_call(item):
    arguments = {name: value for name, value in item.items() if name not in ("type", "id", "call_id", "status", "created_by")}
    return item["call_id"], item["type"].removesuffix("_call"), json.dumps(arguments)


def body_of(item):
    """What the deltas of an item add up to."""
    return item.arguments if item.type == "function_call" else "".join(getattr(p, "text", None) or getattr(p, "refusal", "") for p in item.content)


async def messages(job):
    client = client_of("anthropic", job["base"])
    tools = [{"name": t["name"], "description": t.get("description") or "", "input_schema": t["parameters"]} for t in job["tools"]]
    request = {"model": job["model"], "max_tokens": 1024, "messages": [{"role": "user", "content": ASK}], **({"tools": tools} if tools else {})}
    if job["form"] == "stream":
        texts = []
        async with client.messages.stream(**request) as stream:
            async for event in stream:
                if event.type == "text":
                    texts.append(event.text)
            answer = await stream.get_final_message()
        if "".join(texts) != "".join(b.text for b in answer.content if b.type == "text"):
            raise RuntimeError("the text events differ from the final message")
    else:
        answer = await client.messages.create(**request)
    usage = answer.usage
    return {
        "text": "".join(b.text for b in answer.content if b.type == "text"),
        "refusal": "",
        "reasoning": "".join(b.thinking for b in answer.content if b.type == "thinking"),
        "calls": [[b.id, b.name, b.input if isinstance(b.input, str) else json.dumps(b.input)] for b in answer.content if b.type == "tool_use"],
        "finish": answer.stop_reason,
        "usage": usage and {"input": (usage.input_tokens or 0) + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0), "output": usage.output_tokens},
    }


FRONTS = {"chat": chat, "responses": responses, "messages": messages}


async def ask(job):
    result, start = {k: job[k] for k in ("id", "client", "front", "form")}, time.monotonic()
    try:
        result.update(await asyncio.wait_for(FRONTS[job["front"]](job), 90))
    except Exception as e:  # whatever a client raises is its result
        status = getattr(e, "status_code", None)
        result["error"] = {"kind": type(e).__name__, "status": status, "message": str(e)[:600]}
    result["seconds"] = time.monotonic() - start
    print(json.dumps(result), flush=True)


async def main():
    gate, tasks, loop = asyncio.Semaphore(8), set(), asyncio.get_running_loop()

    async def guarded(job):
        try:
            await ask(job)
        finally:
            gate.release()

    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await gate.acquire()
        task = asyncio.create_task(guarded(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)


asyncio.run(main())
