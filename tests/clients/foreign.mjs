// Starts aimock (https://github.com/CopilotKit/aimock) with the answers of foreign.py, and prints its address. Ends with its standard input.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const installed = createRequire(process.env.CLIENTS + '/package.json');
const { LLMock } = await import(pathToFileURL(installed.resolve('@copilotkit/aimock')).href);
const mock = new LLMock({ port: 0 });
const weather = { name: 'get_weather', arguments: { city: 'Paris' } };
mock.on({ model: 'text' }, { content: 'Hello from afar.' });
mock.on({ model: 'call' }, { toolCalls: [weather] });
mock.on({ model: 'both' }, { content: 'I look.', toolCalls: [weather, { name: 'get_weather', arguments: { city: 'Rome "Nuova"\n' } }] });
mock.on({ model: 'limited' }, { error: { message: 'Rate limited', type: 'rate_limit_error' }, status: 429 });
mock.on({ model: 'broken' }, { error: { message: 'Broken', type: 'server_error' }, status: 500 });
mock.on({ model: 'malformed' }, { content: 'Hello' }, { chaos: { malformedRate: 1 } });
mock.on({ model: 'disconnect' }, { content: 'Hello' }, { chaos: { disconnectRate: 1 } });
await mock.start();
console.log(mock.url);
for await (const _ of process.stdin);
await mock.stop();
process.exit(0);
