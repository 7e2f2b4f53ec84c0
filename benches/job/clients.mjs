// The clients of npm that the jobs need, from the folder that tests/clients/install makes, and the tool: a process for each call.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const installed = createRequire(process.env.CLIENTS + '/package.json');
export const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
export const parameters = { type: 'object', properties: { n: { type: 'integer' } } };
export const run = async ({ n }) => (await promisify(execFile)('/bin/echo', [`done: ${n}`])).stdout;
