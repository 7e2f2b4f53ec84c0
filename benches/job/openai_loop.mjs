// The job with npm's openai and the loop that it has: openai_loop.mjs BASE MODEL.
import { load, parameters, run } from './clients.mjs';

const { default: OpenAI } = await load('openai');
const [, , baseURL, model] = process.argv;
const runner = new OpenAI({ baseURL }).chat.completions.runTools(
  {
    model,
    stream: true,
    messages: [{ role: 'user', content: 'go' }],
    tools: [{ type: 'function', function: { name: 't', description: 'A tool.', parameters, parse: JSON.parse, function: run } }],
  },
  { maxChatCompletions: 100 },
);
runner.on('content', (delta) => process.stdout.write(delta));
await runner.finalChatCompletion();
