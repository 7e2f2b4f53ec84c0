// Asks servers with the official JavaScript clients and the AI SDK: a job a line on standard input, its result a line on standard output.
// Jobs and results are those of python_clients.py.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import readline from 'node:readline';

const installed = createRequire(process.env.CLIENTS + '/package.json');
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { default: OpenAI } = await load('openai');
const { default: Anthropic } = await load('@anthropic-ai/sdk');
const { streamText, generateText, jsonSchema, tool } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');
const { createOpenAI } = await load('@ai-sdk/openai');
const { createAnthropic } = await load('@ai-sdk/anthropic');
globalThis.AI_SDK_LOG_WARNINGS = false;

const ASK = 'What is to be done?';
const known = new Map();
// One client a server, so that connections are used again.
const clientOf = (kind, base, make) => {
  const key = kind + ' ' + base;
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
};
const openai = (base) => clientOf('openai', base, () => new OpenAI({ baseURL: base + '/v1', apiKey: 'none', maxRetries: 0, timeout: 60_000 }));
const anthropic = (base) => clientOf('anthropic', base, () => new Anthropic({ baseURL: base, apiKey: 'none', maxRetries: 0, timeout: 60_000 }));

async function chat(job) {
  const tools = job.tools.map((t) => ({ type: 'function', function: t }));
  const request = { model: job.model, messages: [{ role: 'user', content: ASK }], ...(tools.length ? { tools } : {}) };
  let answer;
  let streamed = '';
  if (job.form === 'stream') {
    const stream = openai(job.base).chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    // Of a member that it does not know, the client's final message has the last piece alone.
    stream.on('chunk', (chunk) => {
      const delta = chunk.choices[0]?.delta ?? {};
      streamed += delta.reasoning_content ?? delta.reasoning ?? '';
    });
    answer = await stream.finalChatCompletion();
  } else {
    answer = await openai(job.base).chat.completions.create(request);
  }
  const { message, finish_reason: finish } = answer.choices[0];
  const usage = answer.usage;
  return {
    text: message.content ?? '',
    refusal: message.refusal ?? '',
    reasoning: job.form === 'stream' ? streamed : (message.reasoning_content ?? message.reasoning ?? ''),
    calls: (message.tool_calls ?? []).map((c) => [c.id, c.function.name, c.function.arguments]),
    finish,
    usage: usage && { input: usage.prompt_tokens, output: usage.completion_tokens, total: usage.total_tokens },
  };
}

async function responses(job) {
  const tools = job.tools.map((t) => ({ type: 'function', strict: false, ...t }));
  const request = { model: job.model, input: ASK, ...(tools.length ? { tools } : {}) };
  const answer =
    job.form === 'stream'
      ? await openai(job.base).responses.stream(request).finalResponse()
      : await openai(job.base).responses.create(request);
  if (answer.status === 'failed') throw new Error('failed: ' + JSON.stringify(answer.error));
  const parts = answer.output.filter((i) => i.type === 'message').flatMap((i) => i.content);
  const usage = answer.usage;
  return {
    text: parts.map((p) => p.text ?? '').join(''),
    refusal: parts.map((p) => p.refusal ?? '').join(''),
    reasoning: answer.output.filter((i) => i.type === 'reasoning').flatMap((i) => (i.content?.length ? i.content : (i.summary ?? []))).map((p) => p.text).join(''),
    calls: answer.output.filter((i) => ['function_call', 'custom_tool_call'].includes(i.type) || isOwnCall(i)).map(responsesCall),
    finish: answer.status === 'completed' ? answer.status : `${answer.status}:${answer.incomplete_details?.reason}`,
    usage: usage && { input: usage.input_tokens, output: usage.output_tokens, total: usage.total_tokens },
  };
}

// Calls of the API's own tools that the client runs. They have no name, and members in place of arguments.
const OWN_CALLS = ['shell_call', 'apply_patch_call', 'computer_call'];

// A shell may be in a container of the provider's.
const isOwnCall = ({ type, environment }) => OWN_CALLS.includes(type) && !environment?.type.startsWith('container');

function responsesCall({ type, id, call_id, status, created_by, ...members }) {
  if (OWN_CALLS.includes(type)) return [call_id, type.replace(/_call$/, ''), JSON.stringify(members)];
  return [call_id, members.name, type === 'function_call' ? members.arguments : JSON.stringify({ input: members.input })];
}

async function messages(job) {
  const tools = job.tools.map((t) => ({ name: t.name, description: t.description ?? '', input_schema: t.parameters }));
  const request = { model: job.model, max_tokens: 1024, messages: [{ role: 'user', content: ASK }], ...(tools.length ? { tools } : {}) };
  const answer =
    job.form === 'stream'
      ? await anthropic(job.base).messages.stream(request).finalMessage()
      : await anthropic(job.base).messages.create(request);
  const { content, usage } = answer;
  const all = (kind, member) => content.filter((b) => b.type === kind).map((b) => b[member]).join('');
  return {
    text: all('text', 'text'),
    refusal: '',
    reasoning: all('thinking', 'thinking'),
    calls: content.filter((b) => b.type === 'tool_use').map((b) => [b.id, b.name, typeof b.input === 'string' ? b.input : JSON.stringify(b.input)]),
    finish: answer.stop_reason,
    usage: usage && { input: (usage.input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0), output: usage.output_tokens },
  };
}

const models = {
  chat: (base, model) =>
    clientOf('ai-chat', base, () => createOpenAICompatible({ name: 'served', baseURL: base + '/v1', apiKey: 'none', includeUsage: true }))(model),
  responses: (base, model) => clientOf('ai-responses', base, () => createOpenAI({ baseURL: base + '/v1', apiKey: 'none' })).responses(model),
  messages: (base, model) => clientOf('ai-messages', base, () => createAnthropic({ baseURL: base + '/v1', apiKey: 'none' }))(model),
};

// What the SDK makes of a provider's own items `local_shell_call` and `tool_search_call`, which labels do not have.
const OWN_TOOLS = ['local_shell', 'tool_search'];

async function aiSdk(job) {
  const tools = Object.fromEntries(job.tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.parameters) })]));
  const request = { model: models[job.front](job.base, job.model), prompt: ASK, maxRetries: 0, ...(job.tools.length ? { tools } : {}) };
  let answer;
  if (job.form === 'stream') {
    let failure;
    const stream = streamText({ ...request, onError: ({ error }) => { failure ??= error; } });
    await stream.consumeStream({ onError: (error) => { failure ??= error; } });
    if (failure) {
      // Its promises are rejected too: nobody else may wait for them.
      for (const name of ['text', 'toolCalls', 'finishReason', 'usage', 'reasoningText']) Promise.resolve(stream[name]).catch(() => {});
      throw failure;
    }
    answer = {};
    for (const name of ['text', 'toolCalls', 'finishReason', 'usage', 'reasoningText']) answer[name] = await stream[name];
  } else {
    answer = await generateText(request);
  }
  const { text, toolCalls, finishReason, usage, reasoningText } = answer;
  return {
    text,
    refusal: '',
    reasoning: reasoningText ?? '',
    calls: toolCalls.filter((c) => !c.providerExecuted && !OWN_TOOLS.includes(c.toolName)).map((c) => [c.toolCallId, c.toolName, typeof c.input === 'string' ? c.input : JSON.stringify(c.input)]),
    finish: finishReason,
    usage: usage && { input: usage.inputTokens, output: usage.outputTokens },
  };
}

// The chat behind useChat. What it holds has to be what the package's reader of streams holds, too.
async function useChat(job) {
  const { ask: askChat, chunks, read } = await import('./ui_chat.mjs');
  const { message, error, ended, bodies } = await askChat(job.base + '/api/chat', ASK, { model: job.model, tools: job.tools });
  const all = await chunks(bodies[0] ?? 'data: [DONE]');
  if (error) throw error;
  const held = await read(bodies[0]);
  const { id: _, ...rest } = held;
  const { id: __, ...shown } = message;
  if (JSON.stringify(rest) !== JSON.stringify(shown)) throw new Error('readUIMessageStream holds something else than the chat');
  const metadata = message.metadata ?? {};
  const parts = (kind) => message.parts.filter((p) => p.type === kind);
  const calls = message.parts.filter((p) => p.type.startsWith('tool-'));
  if (message.parts.some((p) => p.state === 'streaming' || p.state === 'input-streaming')) throw new Error('a part did not end');
  return {
    text: parts('text').map((p) => p.text).join(''),
    refusal: '',
    reasoning: parts('reasoning').map((p) => p.text).join(''),
    calls: calls.map((p) => [p.toolCallId, p.type.slice('tool-'.length), typeof p.input === 'string' ? p.input : JSON.stringify(p.input)]),
    finish: ended?.finishReason,
    usage: metadata.usage ? { input: metadata.usage.inputTokens, output: metadata.usage.outputTokens } : null,
    chunks: all.length,
  };
}

// The agent of AG-UI, whose verifier refuses events in another order than the protocol's. Each event has to fit the schema of its core.
async function agUi(job) {
  console.error = () => {};
  const { HttpAgent } = await load('@ag-ui/client');
  const { EventSchemas } = await load('@ag-ui/core/schemas');
  const agent = new HttpAgent({ url: job.base + '/api/ag-ui', threadId: `t-${job.id}-${Math.random()}`, initialMessages: [{ id: 'u1', role: 'user', content: ASK }] });
  let failure;
  let finished;
  let chunks = 0;
  await agent.runAgent({ tools: job.tools, forwardedProps: { model: job.model } }, {
    onEvent: ({ event }) => { chunks += 1; EventSchemas.parse(event); },
    onRunErrorEvent: ({ event }) => { failure = new Error(event.message); },
    onRunFinishedEvent: ({ event }) => { finished = event; },
    onRunFailed: ({ error }) => { failure ??= error; },
  });
  if (failure) throw failure;
  const of = (role) => agent.messages.filter((m) => m.role === role);
  const usage = finished.usage?.[0];
  // The protocol takes nothing back: a call that does not hold has a result which says so.
  const ended = new Set(of('tool').map((m) => m.toolCallId));
  return {
    text: of('assistant').map((m) => m.content ?? '').join(''),
    refusal: '',
    reasoning: of('reasoning').map((m) => m.content).join(''),
    calls: of('assistant').flatMap((m) => m.toolCalls ?? []).filter((c) => !ended.has(c.id)).map((c) => [c.id, c.function.name, c.function.arguments]),
    finish: finished.metadata.finishReason.replace('_', '-'),
    usage: usage?.inputTokens === undefined ? null : { input: usage.inputTokens, output: usage.outputTokens },
    chunks,
  };
}

const direct = { chat, responses, messages, ui: useChat, 'ag-ui': agUi };

async function ask(job) {
  const { id, client, front, form } = job;
  const start = performance.now();
  const limit = new Promise((_, no) => setTimeout(() => no(new Error('no answer within 90 s')), 90_000).unref());
  try {
    const found = await Promise.race([client === 'ai-sdk' ? aiSdk(job) : direct[front](job), limit]);
    return { id, client, front, form, seconds: (performance.now() - start) / 1000, ...found };
  } catch (e) {
    const status = e?.status ?? e?.statusCode ?? null;
    return { id, client, front, form, seconds: (performance.now() - start) / 1000, error: { kind: e?.constructor?.name ?? typeof e, status, message: String(e?.message ?? JSON.stringify(e)).slice(0, 600) } };
  }
}

process.on('unhandledRejection', () => {});
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function worker() {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) return;
    process.stdout.write(JSON.stringify(await ask(JSON.parse(value))) + '\n');
  }
}
await Promise.all(Array.from({ length: 8 }, worker));
process.exit(0);
