// Reports as a validator, a browser and a printer see them: node reports.mjs BIN
// Every log of fixtures/ as HTML goes through the Nu HTML checker, in one process; a few are opened in Chromium, without JavaScript of
// their own, in light and dark, narrow and wide, and on paper. CLIENTS names the folder of the npm packages.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { browse, installed, scratch, violations } from './harness.mjs';

const vnu = installed.resolve('vnu-jar/build/dist/vnu.jar');

const bin = resolve(process.argv[2] ?? 'target/debug');
const folder = scratch('reports');
mkdirSync(join(folder, 'pages'));
let failures = 0;
function check(holds, what) {
  if (holds) return;
  failures += 1;
  console.error(`FAILED ${what}`);
}

// A run with everything that a report shows, markup in every text included.
const evil = '<img src=x onerror=alert(1)><script>alert(1)</script>"\'&\u001b[2J\u202e';
const rich = [
  { type: 'message', message: { role: 'user', content: `Why? ${evil}` } },
  { type: 'stream_start', v: 1, t: 0, model: evil },
  { type: 'thinking', t: 5, text: `I think ${evil}` },
  { type: 'content_delta', t: 9, text: `# One\n\n*two* ${evil}\n\n| a | b |\n|---|--:|\n| c | d |\n\n1. e\n\n   \`\`\`sh\n   f\n   \`\`\`\n\n> g [h](javascript:alert(1)) ![i](https://example.org/i.png)` },
  ...['done', 'failed', 'waits', 'lost'].flatMap((name, n) => [
    { type: 'tool_call', t: 20 + n, index: n, tool_id: `c${n}`, tool_name: `${name} ${evil}`, arguments: { [evil]: evil }, commit: 'balanced' },
    { type: 'tool_use', t: 20 + n, tool_id: `c${n}`, tool_name: name, status: 'running', input_summary: '', timestamp: 1795527000000 + n },
  ]),
  { type: 'stream_end', t: 30, finish_reason: 'tool_calls' },
  { type: 'tool_result', tool_id: 'c0', tool_name: 'done', status: 'success', output: `${evil}\n`.repeat(3000), duration_ms: 12 },
  { type: 'tool_result', tool_id: 'c1', tool_name: 'failed', status: 'error', output: evil, exit_code: 1, duration_ms: 700 },
  { type: 'tool_result', tool_id: 'c2', tool_name: 'waits', status: 'pending', output: evil, hash: evil },
  { type: 'error', source: evil, code: evil, message: evil },
];
writeFileSync(join(folder, 'rich.ndjson'), rich.map((event) => `${JSON.stringify(event)}\n`).join(''));

function logs(at) {
  return readdirSync(at, { withFileTypes: true }).flatMap((entry) => {
    const path = join(at, entry.name);
    if (entry.isDirectory()) return logs(path);
    return entry.name.endsWith('.ndjson') ? [path] : [];
  });
}
const all = [join(folder, 'rich.ndjson'), ...['logs', 'views', 'streams', 'cases', 'traces'].flatMap((name) => logs(join('fixtures', name)))];
for (const log of all) {
  // A log with an error ends with 2, and has a report all the same.
  const ran = spawnSync(join(bin, 'tc-view'), ['--format', 'html', log]);
  check(ran.status === 0 || ran.status === 2, `${log}: status ${ran.status}`);
  writeFileSync(join(folder, 'pages', `${log.replaceAll(/[^a-z0-9]+/gi, '-')}.html`), ran.stdout);
}
// What a model writes is shown as it came, so that it may be in any normal form, and have characters of any kind.
const theirs = '(?s).*(Unicode Normalization Form C|Private Use Area|composing character).*';
const checked = spawnSync('java', ['-jar', vnu, '--filterpattern', theirs, join(folder, 'pages')], { encoding: 'utf8', maxBuffer: 1 << 26 });
check(checked.status === 0 && checked.stderr.trim() === '', `the Nu HTML checker: ${checked.stderr.slice(0, 4000)}`);

const browser = await browse();
const pages = readdirSync(join(folder, 'pages')).filter((name) => /(rich|fixtures-views-(markdown|session|streams)-in)-ndjson\.html$/.test(name));
check(pages.length === 4, `${pages.length} pages`);
for (const name of pages) {
  for (const [width, colorScheme] of [[400, 'dark'], [800, 'light'], [1400, 'dark']]) {
    const where = `${name} at ${width}, ${colorScheme}`;
    // The policy would keep axe out; that nothing runs is checked without this, below.
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    await page.goto(`file://${join(folder, 'pages', name)}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= width, `${where}: ${wide} pixels wide`);
    for (const open of [false, true]) {
      await page.evaluate((open) => document.querySelectorAll('details').forEach((card) => { card.open = open; }), open);
      for (const violation of await violations(page)) check(false, `${where}: axe ${violation}`);
    }
    await context.close();
  }
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  const asked = [];
  const said = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => said.push(message.text()));
  page.on('dialog', (dialog) => said.push(dialog.message()));
  await page.goto(`file://${join(folder, 'pages', name)}`);
  check(asked.length === 1 && said.length === 0, `${name}: asks for ${asked} and says ${said}`);
  const style = await page.locator('body').evaluate((body) => getComputedStyle(body).margin);
  check(style === '0px', `${name}: the policy refuses the style`);
  // On paper all cards are open. The browser opens them when it next draws the page, which a screenshot makes it do.
  await page.emulateMedia({ media: 'print' });
  await page.screenshot();
  const hidden = await page.locator('.card dl').evaluateAll((parts) => parts.filter((part) => !part.checkVisibility({ contentVisibilityAuto: true })).length);
  check(hidden === 0, `${name}: ${hidden} cards are closed on paper`);
  await context.close();
}
// With scripts allowed nothing runs either.
const context = await browser.newContext();
const page = await context.newPage();
page.on('dialog', (dialog) => check(false, `a script ran: ${dialog.message()}`));
await page.goto(`file://${join(folder, 'pages', pages.find((name) => name.includes('rich')))}`);
check((await page.locator('img, script, iframe, a:not([href^="#"])').count()) === 0, 'an element that is not ours');
check((await page.locator('main').innerText()).includes('<script>alert(1)</script>'), 'markup of a model is not shown as text');
const states = await page.locator('.card').evaluateAll((cards) => cards.map((card) => `${card.dataset.state} ${card.open}`));
check(states.join() === 'done false,failed true,waits true,lost true', `cards: ${states}`);
await browser.close();
console.log(`${all.length} reports are valid, ${pages.length} of them looked at; ${failures} failures`);
process.exit(failures === 0 ? 0 : 1);
