// Asks once with the client that a line on standard input names, which retries as it does without settings; a line of standard output has its error.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import readline from 'node:readline';

const installed = createRequire(process.env.CLIENTS + '/package.json');
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { default: OpenAI } = await load('openai');
const { default: Anthropic } = await load('@anthropic-ai/sdk');
const { generateText } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');
globalThis.AI_SDK_LOG_WARNINGS = false;

const messages = [{ role: 'user', content: 'hi' }];
const asks = {
  openai: (base) => new OpenAI({ baseURL: base + '/v1', apiKey: 'none' }).chat.completions.create({ model: 'm', messages }),
  anthropic: (base) => new Anthropic({ baseURL: base, apiKey: 'none' }).messages.create({ model: 'm', max_tokens: 9, messages }),
  'ai-sdk': (base) => generateText({ model: createOpenAICompatible({ name: 'tc', baseURL: base + '/v1', apiKey: 'none' })('m'), messages }),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { client, base } = JSON.parse(line);
  let error = null;
  await asks[client](base).catch((e) => (error = String(e.message ?? e)));
  console.log(JSON.stringify({ error }));
}
