// A chat of @ai-sdk/react, the one behind `useChat`, with its own transport; each chunk of its streams has to fit the package's schema, of which every
// object is made strict: a member that the schema does not name is an error here.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const installed = createRequire(process.env.CLIENTS + '/package.json');
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { DefaultChatTransport, readUIMessageStream, parseJsonEventStream, uiMessageChunkSchema } = await load('ai');
const { Chat } = await load('@ai-sdk/react');

/** The package's schema of a chunk, made of its source with each loose object made strict. */
async function strictSchema() {
  const esbuild = await load('esbuild');
  const source = join(dirname(installed.resolve('ai')), '..', 'src', 'ui-message-stream', 'ui-message-chunks.ts');
  const strict = readFileSync(source, 'utf8').replaceAll('z.looseObject', 'z.strictObject');
  if (!strict.includes('z.strictObject')) throw new Error('the schema of chunks has changed its form');
  const built = await esbuild.build({
    stdin: { contents: strict, resolveDir: dirname(source), loader: 'ts' },
    // The package has a part of zod alone.
    plugins: [{ name: 'zod', setup: (build) => build.onResolve({ filter: /util\/zod$/ }, () => ({ path: installed.resolve('zod/v4/mini').replace(/cjs$/, 'js') })) }],
    bundle: true, format: 'esm', platform: 'node', write: false, logLevel: 'error',
  });
  const code = Buffer.from(built.outputFiles[0].contents).toString('base64');
  const { uiMessageChunkSchema: schema } = await import('data:text/javascript;base64,' + code);
  return schema();
}
const schema = await strictSchema();

/** The chunks of a stream, of which each fits the strict schema. */
export async function chunks(body) {
  const frames = body.split('\n\n').filter((frame) => frame && !frame.startsWith(':'));
  if (frames.pop() !== 'data: [DONE]') throw new Error(`the stream does not end with [DONE]: ${body.slice(-200)}`);
  const all = [];
  for (const frame of frames) {
    if (!frame.startsWith('data: ') || frame.includes('\n')) throw new Error(`not a frame of one line: ${frame.slice(0, 200)}`);
    const chunk = JSON.parse(frame.slice(6));
    const checked = await schema.validate(chunk);
    if (!checked.success) throw new Error(`a chunk that the strict schema refuses: ${frame.slice(0, 300)}: ${checked.error.message.slice(0, 300)}`);
    all.push(chunk);
  }
  return all;
}

/** What `readUIMessageStream` has at the end of a stream. */
export async function read(body, message) {
  const bytes = new Response(body).body;
  const parsed = parseJsonEventStream({ stream: bytes, schema: uiMessageChunkSchema });
  const stream = parsed.pipeThrough(new TransformStream({
    transform(part, out) {
      if (!part.success) throw part.error;
      out.enqueue(part.value);
    },
  }));
  let last;
  for await (const state of readUIMessageStream({ stream, message })) last = state;
  return last;
}

/** Asks one question in a chat of its own: the message, and the bodies of all its streams. */
export async function ask(api, text, body, init = {}) {
  const bodies = [];
  const transport = new DefaultChatTransport({
    api, body,
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (!response.ok || !response.body) return response;
      const [one, other] = response.body.tee();
      bodies.push(new Response(other).text());
      return new Response(one, response);
    },
  });
  let ended;
  const chat = new Chat({ transport, onFinish: (facts) => { ended = facts; }, ...init });
  await chat.sendMessage({ text });
  return { chat, message: chat.lastMessage, error: chat.error, ended, bodies: await Promise.all(bodies.map((body) => body.catch(() => ''))) };
}
