// The job with the AI SDK and the loop that it has: ai_sdk.mjs BASE MODEL.
import { load, parameters, run } from './clients.mjs';

const { streamText, tool, jsonSchema, stepCountIs } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');
globalThis.AI_SDK_LOG_WARNINGS = false;
const [, , baseURL, model] = process.argv;
const answer = streamText({
  model: createOpenAICompatible({ name: 'recorded', baseURL, apiKey: process.env.OPENAI_API_KEY })(model),
  prompt: 'go',
  tools: { t: tool({ description: 'A tool.', inputSchema: jsonSchema(parameters), execute: run }) },
  stopWhen: stepCountIs(100),
});
for await (const delta of answer.textStream) process.stdout.write(delta);
