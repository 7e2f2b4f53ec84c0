// A page with useChat in Chromium: ui_page.mjs BINARIES
//
// The page (ui_page.jsx) is bundled by esbuild and served here, beside the paths of tc-serve, which are handed on: so a connection can be cut where a
// network would cut it. The model is a script: it says what the last message asks it to.
import assert from 'node:assert/strict';
import { mkdirSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { join, resolve } from 'node:path';
import { browse, check, installed, listen, scratch, serve } from './harness.mjs';

const binaries = resolve(process.argv[2]);
const folder = scratch('ui-page');
const at = (name) => join(folder, name);
mkdirSync(at('home'));

/** The tools: one that goes on until a file is there, and one that a person has to approve. */
const shell = (name, cls, script) => ({
  name, parameters: { type: 'object', properties: { text: { type: 'string' } } }, exec: { command: ['sh', '-c', script, 'sh', '{text}'], class: cls },
});
writeFileSync(at('tools.json'), JSON.stringify([
  shell('slow', 'read', `echo half; while [ ! -e "${folder}/$1" ]; do sleep 0.02; done; echo whole`),
  shell('remove', 'danger', `echo "$1" >>"${folder}/removed"; echo "removed $1"`),
]));
const go = (name) => writeFileSync(at(name), '');

/** The model: `call TOOL TEXT` and `say TEXT`, a line for each turn; `hold NAME` waits for a file in the middle of a text. */
const model = createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => { body += piece; });
  request.on('end', async () => {
    if (request.method !== 'POST') return response.writeHead(404).end();
    const { messages } = JSON.parse(body);
    const from = messages.findLastIndex((message) => message.role === 'user');
    const turns = [messages[from].content].flat().map((part) => part.text ?? part).join('').split('; ');
    const turn = turns[messages.slice(from).filter((message) => message.role === 'assistant').length] ?? 'say done';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (delta, finish = null) => response.write(`data: ${JSON.stringify({ id: 'x', model: 'm', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    const [verb, ...words] = turn.split(' ');
    if (verb === 'call') {
      const [name, text] = words;
      send({ role: 'assistant', content: 'One moment.' });
      send({ tool_calls: [{ index: 0, id: `call_${text}`, type: 'function', function: { name, arguments: '' } }] });
      for (const piece of JSON.stringify({ text }).match(/.{1,4}/g)) send({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
      send({}, 'tool_calls');
    } else {
      for (const word of words) {
        if (verb === 'hold' && word === words.at(-1)) {
          while (!existsSync(at(word)) && !response.destroyed) await new Promise((ready) => setTimeout(ready, 20));
        }
        send({ content: word + ' ' });
      }
      send({}, 'stop');
    }
    const usage = { prompt_tokens: messages.length, completion_tokens: 1, total_tokens: messages.length + 1 };
    response.end(`data: ${JSON.stringify({ id: 'x', model: 'm', object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`);
  });
});
const modelPort = await listen(model);

/** tc-serve on the same port each time. */
const start = () => serve(binaries, ['--base-url', `http://127.0.0.1:${modelPort}`, '--tools', at('tools.json'), '--sessions', at('sessions')], {
  port: service?.port, env: { HOME: at('home'), PATH: `${binaries}:${process.env.PATH}` },
});
let service;
service = await start();

const bundle = await installed('esbuild').build({
  entryPoints: [join(import.meta.dirname, 'ui_page.jsx')], bundle: true, format: 'iife', write: false, jsx: 'automatic', logLevel: 'error',
  nodePaths: [join(process.env.CLIENTS, 'node_modules')], define: { 'process.env.NODE_ENV': '"production"' },
});
const script = Buffer.from(bundle.outputFiles[0].contents);
const open = new Set();
const page = createServer((request, response) => {
  if (request.url === '/page.js') return response.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
  if (!request.url.startsWith('/api/')) {
    return response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>chat</title><body><script src="/page.js"></script>');
  }
  const headers = { ...request.headers, host: `127.0.0.1:${service.port}` };
  delete headers.origin;
  const onward = httpRequest({ port: service.port, host: '127.0.0.1', method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
    answer.on('error', () => response.destroy());
    answer.on('close', () => { if (!answer.complete) response.destroy(); });
  });
  open.add(response);
  response.on('close', () => { open.delete(response); onward.destroy(); });
  onward.on('error', () => response.destroy());
  request.pipe(onward);
});
const address = `http://127.0.0.1:${await listen(page)}`;

const browser = await browse();
const context = await browser.newContext();
const errors = [];

async function tab(chat) {
  const tab = await context.newPage();
  tab.on('pageerror', (error) => errors.push(`${chat}: ${error}`));
  tab.setDefaultTimeout(20_000);
  await tab.goto(`${address}/#${chat}`);
  await tab.waitForSelector('main', { state: 'attached' });
  return tab;
}
const card = (tab, call, state) => tab.waitForSelector(`.card[data-call="call_${call}"][data-state="${state}"]`);
const ready = (tab, status = 'ready') => tab.waitForSelector(`main[data-status="${status}"]`, { state: 'attached' });
const send = (tab, text) => tab.evaluate((text) => void window.send(text), text);
const texts = (tab) => tab.$$eval('.assistant .text', (all) => all.map((p) => p.textContent.trim()));
const same = (what, got, want) => assert.deepEqual(got, want, what);

const scenarios = {
  async 'cards, progress as a preliminary output, and a reload in the middle of a call'() {
    const one = await tab('reload');
    await send(one, 'call slow a; say All is well.');
    const progress = await card(one, 'a', 'preliminary');
    same('progress', (await progress.textContent()).includes('half'), true);
    await one.reload();
    await card(one, 'a', 'preliminary');
    same('one card', (await one.$$('.card')).length, 1);
    go('a');
    await ready(one);
    await card(one, 'a', 'output-available');
    same('texts', await texts(one), ['One moment.', 'All is well.']);
    same('messages', await one.evaluate(() => window.messages.map((message) => message.role)), ['user', 'assistant']);
    // The conversation goes on, and so does the session.
    await send(one, 'say Fine.');
    await one.waitForFunction(() => window.messages.length === 4);
    await ready(one);
    same('the next answer', (await texts(one)).at(-1), 'Fine.');
    // Another answer in the place of the last.
    await one.evaluate(() => void window.regenerate());
    await ready(one, 'submitted').catch(() => {});
    await ready(one);
    same('regenerated', [(await texts(one)).at(-1), await one.evaluate(() => window.messages.length)], ['Fine.', 4]);
    await one.close();
  },
  async 'a person approves one call and refuses another'() {
    const one = await tab('approval');
    await send(one, 'call remove b; say Gone.');
    await card(one, 'b', 'approval-requested');
    same('not run', existsSync(at('removed')), false);
    await one.click('.approve');
    await card(one, 'b', 'output-available');
    await ready(one);
    same('texts', await texts(one), ['One moment.', 'Gone.']);
    await send(one, 'call remove c; say Kept.');
    await card(one, 'c', 'approval-requested');
    // A reload while the question is open.
    await one.reload();
    await card(one, 'c', 'approval-requested');
    await one.click('.deny');
    await card(one, 'c', 'output-denied');
    await ready(one);
    same('texts', (await texts(one)).at(-1), 'Kept.');
    same('ran', readFileSync(at('removed'), 'utf8'), 'b\n');
    same('one message each', await one.evaluate(() => window.messages.length), 4);
    await one.close();
  },
  async 'a hidden tab loses its connection, and goes on when it is shown'() {
    const one = await tab('hidden');
    const show = (state) => one.evaluate((state) => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, state);
    await send(one, 'call slow d; say Back again.');
    await card(one, 'd', 'preliminary');
    await show('hidden');
    for (const response of open) response.destroy();
    await ready(one, 'error');
    await show('visible');
    await card(one, 'd', 'preliminary');
    go('d');
    await ready(one);
    same('texts', await texts(one), ['One moment.', 'Back again.']);
    await one.close();
  },
  async 'a stop ends the answer, and a late one not the next'() {
    const one = await tab('stop');
    await send(one, 'hold one two e');
    await one.waitForFunction(() => document.querySelector('.assistant .text')?.textContent.includes('two'));
    const late = await one.evaluate(() => window.messages.at(-1).metadata.responseId);
    await one.evaluate(() => window.stop());
    await ready(one);
    same('what was said stays', await texts(one), ['one two']);
    await send(one, 'call slow f; say Done.');
    await card(one, 'f', 'preliminary');
    const answer = await one.evaluate((id) => fetch('/api/chat/stop/stop', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ responseId: id }),
    }).then((answer) => answer.json()), late);
    same('a late stop', answer.cancelled, null);
    go('f');
    await ready(one);
    same('texts', (await texts(one)).at(-1), 'Done.');
    await one.close();
  },
  async 'the service is killed in the middle of a call and of a text, and the answer goes on'() {
    const one = await tab('killed');
    const kill = async () => {
      await service.stop();
      await ready(one, 'error');
      service = await start();
      await one.evaluate(() => void window.resumeStream());
    };
    await send(one, 'call slow g; say Still here.');
    await card(one, 'g', 'preliminary');
    await kill();
    await card(one, 'g', 'preliminary');
    go('g');
    await ready(one);
    same('texts', await texts(one), ['One moment.', 'Still here.']);
    await send(one, 'hold what was cut h');
    await one.waitForFunction(() => [...document.querySelectorAll('.assistant .text')].at(-1).textContent.includes('was cut'));
    await kill();
    go('h');
    await one.waitForFunction(() => [...document.querySelectorAll('.assistant .text')].at(-1).textContent.trim().endsWith('h'));
    await ready(one);
    same('nothing twice', (await texts(one)).at(-1), 'what was cut h');
    await one.close();
  },
};

const failed = await check(scenarios, process.argv.slice(3));
await browser.close();
assert.deepEqual(errors, []);
process.exit(failed ? 1 : 0);
