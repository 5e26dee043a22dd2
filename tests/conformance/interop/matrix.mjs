#!/usr/bin/env node
// Every client before servers of either era: each must be able to do through the gateway what it can do at all.
//
//   node interop/matrix.mjs --base URL --dir DIR [--clients LIST] [--servers LIST]
//
// The gateway at URL has these servers at /NAME/mcp:
//   both    interop/v2-server.mjs DIR/both, which answers in either era; the gateway is to find that out
//   legacy  the same with DIR/legacy, spoken to in its old era (`era: legacy`)
//   modern  the same with DIR/modern and --modern
//   pooled  as legacy, with DIR/pooled and `isolation: principal`
//   files   @modelcontextprotocol/server-filesystem DIR/files
// server-everything is interop.mjs's. The servers are driven at the same time, each by one client after the other.

import { appendFileSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v2 from '@modelcontextprotocol/client';
import { MODERN, ROOT, ai1Peer, ai2Peer, inspector, inspectorInstalled, reconnectionOptions, severable, v1Peer, v2Peer } from './peers.mjs';
import { check, fails, finish, must, refused, skip, textOf, until } from './report.mjs';

const NOTE = 'note://text';

const overHttp = (make, mode) => (url, wire) => {
  const Transport = make === v1Peer ? StreamableHTTPClientTransport : v2.StreamableHTTPClientTransport;
  return make(new Transport(url, { fetch: wire.fetch, reconnectionOptions }), mode);
};

// Name, how it is made, the era that it is to come to.
const clients = {
  'v1-http': { open: overHttp(v1Peer) },
  'v1-sse': { open: (url, wire) => v1Peer(new SSEClientTransport(new URL(url.href.replace(/mcp$/, 'sse')), { fetch: wire.fetch })) },
  'v2-default': { open: overHttp(v2Peer) },
  'v2-legacy': { open: overHttp(v2Peer, 'legacy') },
  'v2-auto': { open: overHttp(v2Peer, 'auto'), modern: true },
  'v2-modern': { open: overHttp(v2Peer, { pin: MODERN }), modern: true },
  'ai-sdk-1': { open: ai1Peer },
  'ai-sdk-2': { open: ai2Peer, modern: true },
  'inspector-legacy': { era: 'legacy' },
  'inspector-auto': { era: 'auto' },
  'inspector-modern': { era: 'modern' }
};

const { values: options } = parseArgs({
  options: {
    base: { type: 'string' }, dir: { type: 'string' },
    clients: { type: 'string', default: Object.keys(clients).join() },
    servers: { type: 'string', default: 'both,legacy,modern,pooled,files' }
  }
});
if (!options.base || !options.dir) {
  console.error('usage: matrix.mjs --base URL --dir DIR [--clients LIST] [--servers LIST]');
  process.exit(2);
}

// One client before one server: what the checks below need.
class Pair {
  constructor(client, server) {
    Object.assign(this, { client, server, dir: join(options.dir, server), wire: severable() });
    this.url = new URL(`/${server}/mcp`, options.base);
    this.name = `${client} > ${server}`;
  }
  check(what, run) {
    return check(this.name, what, run);
  }
  async says(wanted, tool, args = {}, extra = {}) {
    const reply = textOf(await this.peer.call(tool, args, extra));
    must(reply === wanted, `${tool} returned ${reply}`);
  }
}

const has = (list, name) => list.some((item) => item.name === name);

async function lists(pair) {
  const { client } = pair.peer;
  await pair.check('lists', async () => {
    const { tools } = await client.listTools();
    must(has(tools, 'echo') && !has(tools, 'extra'), `the tools are ${tools.map(({ name }) => name).join()}`);
    must(tools.find(({ name }) => name === 'add').outputSchema?.properties?.sum, 'add has lost its output schema');
    const { prompts } = await client.listPrompts();
    must(has(prompts, 'greet'), 'greet is not listed');
    must(has((await client.listResources()).resources, 'note'), 'the note is not listed');
  });
  await pair.check('resource and prompt', async () => {
    writeFileSync(join(pair.dir, 'note.txt'), pair.name);
    const { contents } = await client.readResource({ uri: NOTE });
    must(contents[0].text === pair.name, `the note says ${contents[0].text}`);
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Ulm' } });
    must(messages[0].content.text === 'Hello Ulm', 'the argument did not arrive');
  });
}

async function calls(pair) {
  const { peer } = pair;
  await pair.check('calls', async () => {
    await pair.says('Echo: ünïcödé, 漢字', 'echo', { message: 'ünïcödé, 漢字' });
    must((await peer.call('add', { a: 2, b: 3 })).structuredContent?.sum === 5, 'no structured content');
  });
  await pair.check('failures', async () => {
    const failed = await peer.call('fail', {});
    must(failed.isError && textOf(failed).includes('as it was told'), 'the error is not the tool\'s');
  });
  await pair.check('an unknown tool', async () => {
    if (peer.lacks.unlisted) skip(peer.lacks.unlisted);
    must(await refused(peer.call('no-such-tool', {})), 'an unknown tool was called');
  });
  if (peer.can.has('progress')) {
    await pair.check('progress', async () => {
      // SDK v1 drops what comes at once with the answer, as it does where processors are busy: of three calls one brings at least 1, 2, 3.
      let told;
      for (let call = 1; call <= 3 && !(told?.length >= 3); call++) {
        told = [];
        await pair.says('counted to 4', 'count', { steps: 4, pause: 150, name: `progress ${call}` }, { onprogress: (step) => told.push(step.progress) });
        must('1,2,3,4'.startsWith(told.join()), `progress was ${told.join()}`);
      }
      must(told.length >= 3, `progress was ${told.join() || 'missing'}`);
    });
  }
  await pair.check('cancel', async () => {
    const name = `${pair.name} by signal`;
    const stop = new AbortController();
    const call = peer.call('count', { steps: 100, pause: 100, name }, { signal: stop.signal });
    const lost = fails(call);
    await written(pair, `begun ${name}`);
    stop.abort();
    must(await lost, 'the call was not cancelled');
    if (peer.lacks.cancel) skip(peer.lacks.cancel);
    await written(pair, `cancelled ${name}`);
    await pair.says('Echo: after', 'echo', { message: 'after' });
  });
}

const written = ({ dir }, line) =>
  until(() => readFileSync(join(dir, 'journal.txt'), 'utf8').includes(`${line}\n`), `the server has not written: ${line}`);

// What the client has no answer to must fail at once, and not wait for somebody.
async function asked(pair, what, method, tool, reply) {
  const { peer } = pair;
  await pair.check(what, async () => {
    if (!peer.can.has(what)) return must(await refused(peer.call(tool, {})), 'it was not refused');
    const before = peer.asked.length;
    await pair.says(reply, tool);
    must(peer.asked.slice(before).map((request) => request.method).join() === method, 'the client was not asked once');
  });
}

async function questions(pair) {
  const { peer } = pair;
  await asked(pair, 'elicitation', 'elicitation/create', 'ask-name', 'you are Interop Tester');
  await asked(pair, 'sampling', 'sampling/createMessage', 'ask-poem', 'the poem: sampled by interop');
  await asked(pair, 'roots', 'roots/list', 'ask-roots', `the roots: ${ROOT}`);
  await pair.check('elicitation declined', async () => {
    const { 'elicitation/create': answer } = peer.answers;
    peer.answers['elicitation/create'] = () => ({ action: 'decline' });
    await pair.says('you chose decline', 'ask-name').finally(() => { peer.answers['elicitation/create'] = answer; });
  });
  await pair.check('a prompt that asks', async () => {
    const { messages } = await peer.client.getPrompt({ name: 'welcome' });
    must(messages[0].content.text === 'Welcome Interop Tester', `the prompt is ${messages[0].content.text}`);
  });
  if (peer.can.has('sampling')) {
    await pair.check('two rounds', () => pair.says('Interop Tester: sampled by interop', 'interview'));
    await pair.check('asked in four calls at once', async () => {
      await Promise.all(Array.from({ length: 4 }, () => pair.says('Interop Tester: sampled by interop', 'interview')));
    });
  }
}

let notes = 0;

// Somebody else changes the file; the client must hear of it.
async function hears({ dir, peer }) {
  const before = peer.updates.length;
  writeFileSync(join(dir, 'note.txt'), `note ${++notes}`);
  await until(() => peer.updates.slice(before).includes(NOTE), 'no update arrived');
}

async function subscriptions(pair) {
  const { peer, dir, wire } = pair;
  if (!peer.can.has('watch')) return;
  let watch;
  await pair.check('subscription', async () => {
    watch = await peer.watch(NOTE);
    await hears(pair);
    await peer.call('write-note', { value: 'by a call' });
    must((await peer.client.readResource({ uri: NOTE })).contents[0].text === 'by a call', 'an old text was read');
  });
  await pair.check('a tool comes and goes', async () => {
    for (const there of [true, false]) {
      const before = peer.changes;
      if (there) appendFileSync(join(dir, 'extra'), '');
      else rmSync(join(dir, 'extra'));
      await until(() => peer.changes > before, 'no change was told');
      await until(async () => has((await peer.client.listTools()).tools, 'extra') === there, 'the list is an old one');
    }
  });
  if (pair.client === 'v1-sse') return; // its stream is its session
  await pair.check('subscription after a lost connection', async () => {
    wire.cut();
    if (peer.modern()) {
      must(await watch.closed === 'remote', 'the client did not notice');
      watch = await peer.watch(NOTE);
    }
    await hears(pair);
  });
  await pair.check('the subscription ends', async () => {
    await watch.close();
    const before = peer.updates.length;
    await peer.call('write-note', { value: 'unseen' });
    must((await peer.client.readResource({ uri: NOTE })).contents[0].text === 'unseen', 'an old text was read');
    must(peer.updates.length === before, 'an update came without a subscription');
    const again = await peer.watch(NOTE); // it may hear of that one: the server watches a file, and has its time
    await hears(pair);
    await again.close();
  });
}

async function losses(pair) {
  const { peer, wire } = pair;
  await pair.check('the server ends in a call', async () => {
    must(await refused(peer.call('exit', {})), 'there is an answer');
    await pair.says('Echo: after', 'echo', { message: 'after' });
  });
  if (pair.client === 'v1-sse') return;
  await pair.check('a lost connection', async () => {
    const name = `${pair.name} by loss`;
    let told = 0;
    // SDK v2 does not see that the stream of a modern call has ended without its answer: it waits until the call's time is over.
    const call = peer.call('count', { steps: 8, pause: 100, name }, { onprogress: () => told++, ...(peer.modern() && { timeout: 3000 }) });
    const lost = fails(call);
    await written(pair, `begun ${name}`);
    if (peer.can.has('progress')) await until(() => told > 0, 'no progress before the cut');
    wire.cut();
    if (peer.resumes && !peer.modern()) must(textOf(await call) === 'counted to 8', 'no result');
    else must(await lost, 'the call got an answer over a cut connection');
    if (peer.modern()) await written(pair, `cancelled ${name}`);
    await pair.says('Echo: after', 'echo', { message: 'after' });
  });
}

// The client's only root is a folder below the one that the server was started with.
async function files(pair) {
  const { peer, dir } = pair;
  const root = join(dir, 'own');
  const path = join(root, `${pair.client}.txt`);
  await pair.check('list tools', async () => {
    must(has((await peer.client.listTools()).tools, 'read_text_file'), 'no read_text_file');
  });
  await pair.check('write and read', async () => {
    must(!(await peer.call('write_file', { path, content: 'first\nünïcödé\n' })).isError, 'it cannot be written');
    must(readFileSync(path, 'utf8') === 'first\nünïcödé\n', 'the file holds something else');
    await pair.says('first\nünïcödé\n', 'read_text_file', { path });
  });
  if (peer.can.has('roots') && !peer.modern()) { // it asks for them when it starts, when a modern client has no call in work
    await pair.check('the roots are its directories', () => until(async () => {
      const allowed = textOf(await peer.call('list_allowed_directories', {}));
      return allowed.split('\n').slice(1).join() === root;
    }, 'the server goes by others'));
    await pair.check('nothing outside of the roots', async () => {
      must(await refused(peer.call('list_directory', { path: dir })), 'it was listed');
    });
  }
  await pair.check('nothing outside', async () => {
    must(await refused(peer.call('read_text_file', { path: '/etc/hostname' })), 'it was read');
  });
}

// A process for each request, which takes a second: one call. What else it can, interop.mjs shows.
async function inspected(pair, era) {
  if (pair.server !== 'both' && era !== 'auto') return;
  await pair.check('tools/call', async () => {
    if (!inspectorInstalled()) skip('not installed');
    const { inspect, close } = inspector(pair.url, { era });
    const [tool, arg, answer] = pair.server === 'files' ? ['list_directory', `path=${join(pair.dir, 'own')}`, '[FILE] v2-modern.txt'] :
      ['echo', 'message=hello', 'Echo: hello'];
    const reply = await inspect('--method', 'tools/call', '--tool-name', tool, '--tool-arg', arg).finally(close);
    must(textOf(reply).includes(answer), `the reply was ${textOf(reply)}`);
  });
}

async function drive(pair) {
  const how = clients[pair.client];
  if (how.era) return inspected(pair, how.era);
  pair.peer = how.open(pair.url, pair.wire);
  const connected = await pair.check('connect', async () => {
    if (pair.server === 'files') pair.peer.answers['roots/list'] = () => ({ roots: [{ uri: pathToFileURL(join(pair.dir, 'own')).href }] });
    await pair.peer.connect();
    must(pair.peer.modern() === Boolean(how.modern), `it came to the ${pair.peer.modern() ? 'modern' : 'legacy'} era`);
  });
  if (!connected) return;
  for (const part of pair.server === 'files' ? [files] : [lists, calls, questions, subscriptions, losses]) await part(pair);
  if (pair.peer.transport?.sessionId) {
    await pair.check('end the session', () => pair.peer.transport.terminateSession());
  }
  await pair.peer.client.close();
}

options.dir = realpathSync(options.dir);
await Promise.all(options.servers.split(',').map(async (server) => {
  const dir = join(options.dir, server);
  mkdirSync(join(dir, 'own'), { recursive: true });
  for (const file of server === 'files' ? [] : ['note.txt', 'journal.txt']) writeFileSync(join(dir, file), '');
  const short = server === 'pooled' ? ['v1-http', 'v2-modern', 'ai-sdk-2'] : Object.keys(clients); // one of each kind is enough
  for (const client of options.clients.split(',')) {
    if (short.includes(client)) await drive(new Pair(client, server));
  }
}));
finish();
