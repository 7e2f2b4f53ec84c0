// Stored answers by OpenAI's client for Node.js, with the model of stored.py behind tc-serve: stored.mjs BASE. Exits 1 at what it should not get.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const installed = createRequire(process.env.CLIENTS + '/package.json');
const { default: OpenAI } = await import(pathToFileURL(installed.resolve('openai')).href);
const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', name: 'get_weather', strict: false, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }];
const all = async (stream) => {
  const list = [];
  for await (const event of stream) list.push(event);
  return list;
};
const results = (response) => response.output.filter((item) => item.type === 'function_call').map(({ call_id }) => ({ type: 'function_call_output', call_id, output: '4 degrees' }));

// A chain with a call.
const first = await client.responses.create({ model: 'm', input: 'Weather?', tools });
const second = await client.responses.create({ model: 'm', input: results(first), tools, previous_response_id: first.id });
assert.equal(second.output_text, '3 messages, the last of them: 4 degrees');
// The client sets output_text itself where it makes a response, and not where it reads one.
const { output_text: _, ...bare } = second;
assert.deepEqual(JSON.parse(JSON.stringify(await client.responses.retrieve(second.id).then(({ output_text: __, ...rest }) => rest))), JSON.parse(JSON.stringify(bare)));
assert.deepEqual((await all(client.responses.inputItems.list(second.id))).map((item) => item.type), ['function_call_output']);

// A stream again from every event, by hand and by the helper, which checks the events' order and identity.
for (const given of [[], tools]) {
  const events = await all(await client.responses.create({ model: 'm', input: 'Weather?', tools: given, stream: true }));
  const { id } = events[0].response;
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
  for (const after of events.keys()) {
    const rest = await all(await client.responses.retrieve(id, { stream: true, starting_after: after }));
    assert.deepEqual(rest, events.slice(after + 1));
    const helper = client.responses.stream({ response_id: id, starting_after: after });
    assert.deepEqual((await all(helper)).map((event) => event.sequence_number), [...events.keys()].slice(after + 1));
    assert.equal((await helper.finalResponse()).status, 'completed');
  }
}
assert.equal((await client.responses.stream({ model: 'm', input: 'Weather?', tools }).finalResponse()).output[0].type, 'function_call');

// In the background: polled, and as a stream that is lost and taken up again.
let polled = await client.responses.create({ model: 'm', input: 'Hi', background: true });
assert.equal(polled.status, 'queued');
while (['queued', 'in_progress'].includes(polled.status)) polled = await client.responses.retrieve(polled.id);
assert.equal(polled.status, 'completed');
const begun = [];
for await (const event of await client.responses.create({ model: 'm', input: 'Hi', background: true, stream: true })) {
  begun.push(event);
  if (begun.length === 2) break;
}
const rest = await all(await client.responses.retrieve(begun[0].response.id, { stream: true, starting_after: begun[1].sequence_number }));
assert.equal(rest.at(-1).type, 'response.completed');
assert.equal((await client.responses.cancel(polled.id)).status, 'completed');
await client.responses.delete(polled.id);
await assert.rejects(client.responses.retrieve(polled.id), OpenAI.NotFoundError);

// A conversation and its items.
const conversation = await client.conversations.create({ items: [{ type: 'message', role: 'user', content: 'I am Ann.' }] });
const told = await client.responses.create({ model: 'm', input: 'Who am I?', conversation: conversation.id });
assert.equal(told.output_text, '2 messages, the last of them: Who am I?');
const items = await all(client.conversations.items.list(conversation.id, { order: 'asc', limit: 2 }));
assert.deepEqual(items.map((item) => item.content[0].text), ['I am Ann.', 'Who am I?', told.output_text]);
assert.deepEqual(await client.conversations.items.retrieve(items[1].id, { conversation_id: conversation.id }), items[1]);
assert.equal((await client.conversations.delete(conversation.id)).deleted, true);
