// What the tests in Node share: a folder and processes that end with the test, tc-serve, Chromium, and checks by name.
// CLIENTS is the folder of tests/clients/install.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** `require` and `require.resolve` of the installed packages. */
export const installed = createRequire(join(resolve(process.env.CLIENTS ?? "target/clients"), "node_modules/"));

const children = [];
const folders = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new folder, which is removed at the end. */
export function scratch(name) {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  folders.push(folder);
  return folder;
}

/** A process, which is killed at the end. */
export function start(command, args, options) {
  const child = spawn(command, args, options);
  children.push(child);
  return child;
}

/** tc-serve of the folder `binaries`. `stop` kills it; a service that is started again takes the port of the first. */
export async function serve(binaries, args, { port = 0, env = {} } = {}) {
  const child = start(join(binaries, "tc-serve"), ["--listen", `127.0.0.1:${port}`, ...args], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  let errors = "";
  child.stderr.on("data", (text) => (errors += text));
  const gone = new Promise((done) => child.on("close", done));
  const url = await new Promise((done, fail) => {
    let line = "";
    child.stdout.on("data", (text) => (line += text).includes("\n") && done(line.trim()));
    gone.then(() => fail(new Error(`tc-serve has ended: ${errors}`)));
  });
  return { url, port: Number(new URL(url).port), stop: () => (child.kill("SIGKILL"), gone) };
}

/** The port on which a server of this process listens. */
export const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));

/** Debian's Chromium. */
export const browse = () => installed("playwright-core").chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const axe = readFileSync(installed.resolve("axe-core/axe.min.js"), "utf8");

/** The findings of axe about a page, whose policy must not hold. */
export async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`).join("; ")}`);
}

/** Runs the checks whose name contains one of `words`, or all, one after the other; returns how many have failed. `clean` runs after each. */
export async function check(checks, words, clean = () => {}) {
  let failed = 0;
  for (const [name, run] of Object.entries(checks)) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    const began = Date.now();
    const error = await run().then(() => null, (error) => error);
    if (error) failed += 1;
    console.log(`${error ? "FAILED" : "ok"}: ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)${error ? `\n  ${error.stack}` : ""}`);
    await clean(error);
  }
  return failed;
}
