#!/usr/bin/env node
// Clients of many kinds over Streamable HTTP, while the daemon behind their address is stopped and started, and then killed and
// started: each goes on by itself, without initializing again.
//
//   node restart.mjs --bin DIR [--clients LIST]
//
// --bin has mcpgated and mcpgated-demo.

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { freePort } from '../authserver/lib/ports.mjs';
import { LIMIT, check, finish, must, until } from '../conformance/interop/report.mjs';
import { clients, load } from './clients.mjs';

const ONE_SHOT = /^inspector-/; // a process for each request
const all = clients.filter(({ name, ways }) => ways.includes('http') && !ONE_SHOT.test(name));
const { values: options } = parseArgs({
  options: { bin: { type: 'string' }, clients: { type: 'string', default: all.map(({ name }) => name).join() } }
});
if (!options.bin) {
  console.error('usage: restart.mjs --bin DIR [--clients LIST]');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'mcpgated-restart-'));
const strays = [];
['unhandledRejection', 'uncaughtException'].forEach((event) => process.on(event, (error) => strays.push(error)));

// What is kept belongs to the address in the configuration.
const port = await freePort();

// Resolves once it is ready.
async function start() {
  const file = join(folder, 'mcpgated.yaml');
  writeFileSync(file, JSON.stringify({
    listen: [{ address: `127.0.0.1:${port}` }],
    servers: { demo: { command: resolve(options.bin, 'mcpgated-demo'), path: '/mcp' } }
  }));
  chmodSync(file, 0o600);
  const daemon = spawn(resolve(options.bin, 'mcpgated'), ['-c', file],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, XDG_STATE_HOME: folder, XDG_RUNTIME_DIR: folder } });
  const ended = new Promise((done) => daemon.once('exit', done));
  const lines = [];
  createInterface({ input: daemon.stderr }).on('line', (line) => lines.push(line));
  await until(() => lines.some((line) => / ready: /.test(line)), 'the daemon does not get ready');
  return { lines, async end(signal) { daemon.kill(signal); await ended; } };
}

const within = (promise, ms) => Promise.race([promise, new Promise((_, reject) => setTimeout(reject, ms, new Error(`no end after ${ms} ms`)).unref())]);

async function echo(peer, text) {
  const answer = await within(peer.call('echo', { text }), LIMIT);
  must(answer.includes(text), `the answer was ${answer.slice(0, 200)}`);
}

// While no process listens, a client's request fails; it is sent again, by the same client.
async function goesOn(peer, text) {
  let last;
  await until(() => echo(peer, text).then(() => true, (error) => { last = error; return false; }), '', 10_000).catch(() => { throw last; });
}

const wanted = options.clients.split(',').map((name) => all.find((client) => client.name === name) ?? must(false, `unknown client ${name}`));
await load(wanted);
let daemon = await start();
const url = new URL(`http://127.0.0.1:${port}/mcp`);
const peers = [];
for (const { name, open } of wanted)
  await check(name, 'connects and calls', async () => {
    const peer = await within(open(name, url, 'http'), LIMIT);
    peers.push({ name, peer });
    await echo(peer, 'before');
  });
// The file may be two seconds behind what is answered.
await new Promise((done) => setTimeout(done, 3000));
for (const signal of ['SIGTERM', 'SIGKILL']) {
  await daemon.end(signal);
  daemon = await start();
  for (const { name, peer } of peers) await check(name, `goes on after ${signal}`, () => goesOn(peer, `after ${signal}`));
}
for (const { peer } of peers) await within(Promise.resolve(peer.close()).catch(() => {}), 5000).catch(() => {});
await daemon.end('SIGTERM');
await check('gateway', 'nothing went wrong in it', async () => {
  const wrong = daemon.lines.filter((line) => /^\S+ error /.test(line));
  must(wrong.length === 0, wrong.slice(0, 3).join(' | '));
});
if (strays.length) console.log(`${strays.length} errors came out of clients where nobody waited for them, the first: ${String(strays[0]).slice(0, 200)}`);
rmSync(folder, { recursive: true, force: true });
finish();
