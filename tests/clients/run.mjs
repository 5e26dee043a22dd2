#!/usr/bin/env node
// Clients of many kinds and ages, over each of their transports, before three servers: each connects, lists, calls, is told of progress,
// loses its connections in the middle of a call, and comes back.
//
//   node run.mjs --bin DIR [--npm DIR] [--clients LIST] [--servers LIST] [--jobs N]
//
// --bin has mcpgated and mcpgated-demo, --npm the folder conformance with its node_modules (default: beside this one).
// What a client itself does wrong stands in faults.mjs, with the reason: such a check is skipped.

import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { LIMIT, check, finish, must, skip, until } from '../conformance/interop/report.mjs';
import { clients, load } from './clients.mjs';
import { faultOf } from './faults.mjs';
import { Relay } from './relay.mjs';

const { values: options } = parseArgs({
  options: {
    bin: { type: 'string' }, npm: { type: 'string', default: join(import.meta.dirname, '..') }, jobs: { type: 'string', default: '6' },
    clients: { type: 'string', default: clients.map(({ name }) => name).join() },
    servers: { type: 'string', default: 'demo,everything,files' }
  }
});
if (!options.bin) {
  console.error('usage: run.mjs --bin DIR [--npm DIR] [--clients LIST] [--servers LIST] [--jobs N]');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'mcpgated-clients-'));
const packages = resolve(options.npm, 'conformance', 'node_modules', '@modelcontextprotocol');

// A quick call with its answer, and a long one that reports progress; without one, connections are cut between calls.
const servers = {
  demo: {
    command: [resolve(options.bin, 'mcpgated-demo')],
    path: '/mcp', // one client knows /sse only
    quick: ['echo', { text: 'hello' }, 'hello'],
    long: ['progress', { count: 4, interval_ms: 200 }]
  },
  everything: {
    command: [process.execPath, join(packages, 'server-everything', 'dist', 'index.js'), 'stdio'],
    quick: ['echo', { message: 'hello' }, 'Echo: hello'],
    long: ['trigger-long-running-operation', { duration: 1, steps: 4 }]
  },
  files: {
    command: [process.execPath, join(packages, 'server-filesystem', 'dist', 'index.js'), join(folder, 'files')],
    quick: ['read_text_file', { path: join(folder, 'files', 'one.txt') }, 'one']
  }
};

// What a client does wrong when its connection is cut may come out anywhere.
const strays = [];
const mind = () => ['unhandledRejection', 'uncaughtException'].forEach((event) => process.on(event, (error) => strays.push(error)));

async function startGateway() {
  const file = join(folder, 'mcpgated.yaml');
  mkdirSync(join(folder, 'files'));
  writeFileSync(join(folder, 'files', 'one.txt'), 'one');
  writeFileSync(file, JSON.stringify({
    listen: [{ address: '127.0.0.1:0' }],
    servers: Object.fromEntries(Object.entries(servers).map(([name, { command: [command, ...args], path }]) => [name, { command, args, path }]))
  }));
  chmodSync(file, 0o600);
  const daemon = spawn(resolve(options.bin, 'mcpgated'), ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = [];
  const target = await new Promise((found, reject) => {
    const late = setTimeout(() => reject(new Error(`the gateway does not get ready:\n${log.join('\n')}`)), 20_000);
    createInterface({ input: daemon.stderr }).on('line', (line) => {
      log.push(line);
      const url = /ready: .* at (http\S+)$/.exec(line)?.[1];
      if (url) {
        clearTimeout(late);
        found({ host: '127.0.0.1', port: Number(new URL(url).port) });
      }
    });
    daemon.on('exit', (code) => reject(new Error(`the gateway ended with ${code}:\n${log.join('\n')}`)));
  });
  return { daemon, log, target };
}

const within = (promise, ms, what) => Promise.race([promise, new Promise((_, reject) => setTimeout(reject, ms, new Error(`${what}: no end after ${ms} ms`)).unref())]);

// A client learns of a cut when it next reads: what it sends before fails, and may be sent again.
async function back(run, limit) {
  let last;
  await until(() => within(run(), LIMIT, 'the call').then(() => true, (error) => { last = error; return false; }), '', limit)
    .catch(() => { throw last; });
}

// One client over one transport before one server.
async function drive(client, way, name, target) {
  const server = servers[name];
  const title = `${client.name} ${way} > ${name}`;
  const relay = new Relay(target);
  const url = new URL(`http://127.0.0.1:${await relay.listen()}${(server.path ?? `/${name}/mcp`).replace('mcp', way === 'sse' ? 'sse' : 'mcp')}`);
  const open = () => within(client.open(client.name, url, way), LIMIT, 'connect');
  const [tool, args, answer] = server.quick;
  const quick = async (peer) => {
    const text = await peer.call(tool, args);
    must(text.includes(answer), `the answer was ${text.slice(0, 200)}`);
  };
  const checked = (what, run) => check(title, what, async () => {
    const fault = faultOf(client.name, way, what);
    await run(fault);
    if (fault !== undefined) skip(fault);
  });
  let peer;

  try {
    if (!await checked('connect', async () => { peer = await open(); })) return;
    await checked('list', async () => { must((await peer.list()).includes(tool), `${tool} is not listed`); });
    await checked('call', () => quick(peer));
    if (server.long && client.progress) {
      // Some clients forget what comes at once with the answer; a busy machine may do that.
      await checked('progress', () => back(async () => {
        const told = [];
        await peer.call(...server.long, (step) => told.push(step.progress));
        must(told.length > 1 && '1,2,3,4'.startsWith(told.join()), `progress was ${told.join() || 'missing'}`); 
      }, 10_000));
    }
    if (server.long) {
      // Without a stream, and an event of it, there is nothing that a client could come back for: its call only has to end.
      await checked(client.progress ? 'the answer after a cut' : 'a call that was cut ends', async (fault) => {
        relay.forget();
        const call = peer.call(...server.long, client.progress ? () => {} : undefined);
        const ended = call.then(() => {}, () => {});
        await (client.progress ? relay.passed('down', 'notifications/progress') : relay.passed('up', server.long[0]));
        must(relay.cut() > 0, 'there was nothing to cut');
        if (!fault) await within(client.progress ? call : ended, 15_000, 'the call');
      });
    } else {
      relay.cut();
    }
    await checked('the same client comes back', async (fault) => {
      if (!fault) return back(() => quick(peer), 10_000);
      const comes = await back(() => within(quick(peer), 2000, 'the call'), 4000).then(() => true, () => false);
      must(!comes, 'it does come back: its row in faults.mjs is to go');
    });
    await check(title, 'another one connects', async () => {
      let other;
      await back(async () => { other = await open(); }, 10_000);
      await quick(other);
      await within(Promise.resolve(other.close()).catch(() => {}), 5000, 'close').catch(() => {});
    });
  } finally {
    await within(Promise.resolve(peer?.close()).catch(() => {}), 5000, 'close').catch(() => {});
    relay.cut(); // and its port stays its own, so that no connection kept for it meets another relay
  }
}

const { daemon, log, target } = await startGateway();
mind();
const wanted = options.clients.split(',').map((name) => clients.find((client) => client.name === name) ?? must(false, `unknown client ${name}`));
await load(wanted);
const work = wanted.flatMap((client) => client.ways.flatMap((way) =>
  options.servers.split(',').filter((server) => client.servers?.includes(server) ?? true).map((server) => [client, way, server])));
await Promise.all(Array.from({ length: Number(options.jobs) }, async () => {
  for (let next; (next = work.shift());) await drive(...next, target).catch((error) => check(next[0].name, 'drive', async () => { throw error; }));
}));

await check('gateway', 'ends well, and nothing went wrong in it', async () => {
  const status = new Promise((ended) => { daemon.removeAllListeners('exit').once('exit', ended); });
  daemon.kill('SIGTERM');
  must(await within(status, 25_000, 'the end') === 0, `it ended with ${await status}`);
  const wrong = log.filter((line) => /^\S+ error |AddressSanitizer|LeakSanitizer|runtime error/.test(line));
  must(wrong.length === 0, wrong.slice(0, 3).join(' | '));
});
if (daemon.exitCode === null) daemon.kill('SIGKILL');
if (strays.length) console.log(`${strays.length} errors came out of clients where nobody waited for them, the first: ${String(strays[0]).slice(0, 200)}`);
rmSync(folder, { recursive: true, force: true });
finish();
