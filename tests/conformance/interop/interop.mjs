#!/usr/bin/env node
// Drives @modelcontextprotocol/server-everything behind a URL with real clients.
//
//   node interop/interop.mjs --url URL [--sse-url URL] [--clients LIST] [--without CHECKS] [--header 'N: V'] [--json FILE]
//
// Clients (all by default): v1-http and v1-sse (SDK v1), v2-legacy and v2-modern (SDK v2 in either
// era), v2-default (SDK v2 as it comes: legacy), v2-auto (SDK v2 that chooses the era itself), ai-sdk-1 and ai-sdk
// (that of the AI SDK 1, which is legacy, and 2, which chooses), inspector and inspector-modern (its CLI).
// v1-sse needs --sse-url, the Inspector needs `npm ci` in this folder; without, they are skipped. --without names checks to skip, comma-separated.

import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import { MODERN, ROOT, ai1Peer, ai2Peer, inspector, inspectorInstalled, reconnectionOptions, severable, v1Peer, v2Peer } from './peers.mjs';
import * as report from './report.mjs';
import { finish, must, refused, results, skip, textOf, until } from './report.mjs';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' }, 'sse-url': { type: 'string' }, json: { type: 'string' },
    header: { type: 'string', multiple: true, default: [] },
    without: { type: 'string', default: '' },
    clients: { type: 'string', default: 'v1-http,v1-sse,v2-legacy,v2-modern,v2-default,v2-auto,ai-sdk-1,ai-sdk,inspector,inspector-modern' }
  }
});
if (!options.url) {
  console.error('usage: interop.mjs --url URL [--sse-url URL] [--clients LIST]');
  process.exit(2);
}
const url = new URL(options.url);
const headers = Object.fromEntries(options.header.map((line) => line.match(/^([^:]+):\s*(.*)$/s).slice(1)));

const DOCUMENT = 'demo://resource/static/document/architecture.md';

const unwanted = new Set(options.without.split(','));
const check = (client, name, run) =>
  report.check(client, name, unwanted.has(name) ? async () => skip('not asked for') : run);

// SDK v1 drops a progress notification that arrives right before the result, so the last is optional.
// SDK v2 tells the last progress once more when it tries again: a server that starts may ask for roots during any call.
function mustProgress(peer, told, steps) {
  const seen = peer.modern() ? told.filter((step, n) => step !== told[n - 1]) : told;
  const wanted = Array.from({ length: seen.length }, (_, n) => n + 1);
  must(seen.join() === wanted.join() && seen.length >= steps - 1 && seen.length <= steps,
    `progress was ${seen.join() || 'missing'} of ${steps}`);
}

// The least that a connected client must be able to do. Returns the names of the tools.
async function basics(name, peer) {
  const tools = new Set();
  await check(name, 'list-tools', async () => {
    for (const tool of (await peer.client.listTools()).tools) tools.add(tool.name);
    must(tools.has('echo'), `no echo among ${[...tools].join(', ')}`);
  });
  await check(name, 'echo', async () => {
    const message = 'line\nbreak, "quotes", \u2028, \u0000, ünïcödé, 漢字, 🎉';
    must(textOf(await peer.call('echo', { message })) === `Echo: ${message}`, 'the text came back changed');
  });
  return tools;
}

// What every client must be able to do in the era that it was told.
async function common(name, peer) {
  const { client } = peer;
  const tools = await basics(name, peer);
  const offered = (tool) => tools.has(tool) || skip(`${tool} is not offered`);

  await check(name, 'echo-large', async () => {
    const message = 'x'.repeat(1_000_000);
    must(textOf(await peer.call('echo', { message })) === `Echo: ${message}`, 'the text came back changed');
  });
  await check(name, 'parallel-calls', async () => {
    const messages = Array.from({ length: 25 }, (_, n) => `message ${n}`);
    const replies = await Promise.all(messages.map((message) => peer.call('echo', { message })));
    messages.forEach((message, n) => must(textOf(replies[n]) === `Echo: ${message}`, `reply ${n} is ${textOf(replies[n])}`));
  });
  await check(name, 'structured-content', async () => {
    const reply = await peer.call('get-structured-content', { location: 'Chicago' });
    must(typeof reply.structuredContent?.temperature === 'number', 'no structured content');
  });
  await check(name, 'unknown-tool', async () => {
    must(await refused(peer.call('no-such-tool', {})), 'calling a tool that is not there succeeded');
  });
  await check(name, 'progress', async () => {
    const seen = [];
    await peer.call('trigger-long-running-operation', { duration: 1, steps: 5 }, { onprogress: (step) => seen.push(step.progress) });
    mustProgress(peer, seen, 5);
  });
  await check(name, 'progress-of-two-calls', async () => {
    const seen = [[], []];
    await Promise.all(seen.map((list, n) => peer.call('trigger-long-running-operation', { duration: 1, steps: 3 + n },
      { onprogress: (step) => step.total === 3 + n && list.push(step.progress) })));
    seen.forEach((list, n) => mustProgress(peer, list, 3 + n));
  });
  await check(name, 'cancel', async () => {
    const stop = new AbortController();
    const call = peer.call('trigger-long-running-operation', { duration: 20, steps: 2 }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 300);
    must(await call.then(() => false, () => true), 'the call was not cancelled');
    must(textOf(await peer.call('echo', { message: 'after' })) === 'Echo: after', 'no answer after the cancelled call');
  });
  await check(name, 'sampling', async () => {
    offered('trigger-sampling-request');
    const reply = await peer.call('trigger-sampling-request', { prompt: 'hello', maxTokens: 20 });
    const request = peer.asked.find(({ method }) => method === 'sampling/createMessage');
    must(request?.params.maxTokens === 20, 'the client was not asked');
    must(textOf(reply).includes('sampled by interop'), `the answer did not arrive: ${textOf(reply)}`);
  });
  await check(name, 'elicitation', async () => {
    offered('trigger-elicitation-request');
    const reply = await peer.call('trigger-elicitation-request', {});
    const request = peer.asked.find(({ method }) => method === 'elicitation/create');
    must(request?.params.requestedSchema?.properties?.check?.type === 'boolean', 'the client was not asked');
    must(textOf(reply).includes('Interop Tester'), `the answer did not arrive: ${textOf(reply)}`);
  });
  await check(name, 'roots', async () => {
    offered('get-roots-list');
    const reply = await peer.call('get-roots-list', {});
    must(textOf(reply).includes(ROOT), `the roots did not arrive: ${textOf(reply)}`);
  });
  await check(name, 'resources', async () => {
    const { resources } = await client.listResources();
    must(resources.some((entry) => entry.uri === DOCUMENT), 'the document is not listed');
    const { contents } = await client.readResource({ uri: DOCUMENT });
    must(contents[0].text.length > 100, 'the document is empty');
  });
  await check(name, 'prompts', async () => {
    const { prompts } = await client.listPrompts();
    must(prompts.some((prompt) => prompt.name === 'simple-prompt'), 'simple-prompt is not listed');
    const { messages } = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Ulm' } });
    must(JSON.stringify(messages).includes('Ulm'), 'the argument did not arrive');
  });
  await check(name, 'completion', async () => {
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' }
    });
    must(completion.values.includes('Engineering'), `completed to ${completion.values.join() || 'nothing'}`);
  });
  await check(name, 'subscribe', async () => {
    const watch = await peer.watch(DOCUMENT);
    await peer.call('toggle-subscriber-updates', {}); // starts the updates
    try {
      await until(() => peer.updates.includes(DOCUMENT), 'no update arrived');
    } finally {
      await peer.call('toggle-subscriber-updates', {}); // stops them
      await watch.close();
    }
  });
}

// What only sessions offer: resuming a stream, and ending the session.
async function sessions(name, peer, wire, open) {
  await check(name, 'resume-after-cut', async () => {
    const seen = [];
    const call = peer.call('trigger-long-running-operation', { duration: 3, steps: 6 }, { onprogress: (step) => seen.push(step.progress) });
    await until(() => seen.length >= 2, 'no progress before the cut');
    wire.cut();
    must(textOf(await call).includes('completed'), 'no result');
    mustProgress(peer, seen, 6);
  });
  await check(name, 'resume-in-new-client', async () => {
    const { sessionId, protocolVersion } = peer.transport;
    must(sessionId, 'the server issued no session id');
    let token;
    const args = { duration: 3, steps: 6 };
    const lost = peer.call('trigger-long-running-operation', args, { onprogress() {}, onresumptiontoken: (event) => { token = event; } });
    lost.catch(() => {});
    await until(() => token, 'no event id arrived');
    await sleep(1200);
    await peer.client.close();
    Object.assign(peer, open({ sessionId, protocolVersion }));
    await peer.connect();
    peer.transport.setProtocolVersion?.(protocolVersion);
    const reply = await peer.client.request(
      { method: 'tools/call', params: { name: 'trigger-long-running-operation', arguments: args } },
      types.CallToolResultSchema, { resumptionToken: token, timeout: 10_000 });
    must(textOf(reply).includes('completed'), 'no result');
  });
}

async function terminate(name, peer) {
  await check(name, 'terminate-session', async () => {
    const { sessionId, protocolVersion } = peer.transport;
    must(sessionId, 'the server issued no session id');
    await peer.transport.terminateSession();
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
        'mcp-session-id': sessionId, 'mcp-protocol-version': protocolVersion
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    });
    await response.body?.cancel();
    must(response.status === 404, `HTTP ${response.status} for the ended session, not 404`);
  });
}

const sent = { requestInit: { headers } };

// A client that chooses the era itself: it must get through. What works in an era, the others show.
async function choosing(name, peer) {
  if (!await check(name, 'connect', peer.connect)) return;
  await basics(name, peer);
  await peer.client.close();
}

async function inspected(name, era) {
  if (!inspectorInstalled()) return check(name, 'tools/list', async () => skip('not installed'));
  const { inspect, close } = inspector(url, { headers: options.header, era });
  await check(name, 'tools/list', async () => {
    must((await inspect('--method', 'tools/list')).tools.some((tool) => tool.name === 'echo'), 'no echo');
  });
  await check(name, 'tools/call', async () => {
    const reply = await inspect('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hello');
    must(textOf(reply) === 'Echo: hello', `the reply was ${textOf(reply)}`);
  });
  await check(name, 'resources/read', async () => {
    must((await inspect('--method', 'resources/read', '--uri', DOCUMENT)).contents.length === 1, 'no contents');
  });
  await check(name, 'prompts/list', async () => {
    must((await inspect('--method', 'prompts/list')).prompts.length > 1, 'no prompts');
  });
  close();
}

const clients = {
  async 'v1-http'(name) {
    const wire = severable();
    const open = (extra) => v1Peer(new StreamableHTTPClientTransport(url, { ...sent, fetch: wire.fetch, reconnectionOptions, ...extra }));
    const peer = open();
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await sessions(name, peer, wire, open);
    await terminate(name, peer);
    await peer.client.close();
  },
  async 'v1-sse'(name) {
    if (!options['sse-url']) return check(name, 'connect', async () => skip('no --sse-url'));
    const peer = v1Peer(new SSEClientTransport(new URL(options['sse-url']), sent));
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await peer.client.close();
  },
  async 'v2-legacy'(name) {
    const peer = v2Peer(new v2.StreamableHTTPClientTransport(url, { ...sent, reconnectionOptions }), 'legacy');
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await terminate(name, peer);
    await peer.client.close();
  },
  async 'v2-modern'(name) {
    const probe = v2Peer(new v2.StreamableHTTPClientTransport(url, sent), 'auto');
    await check(name, 'negotiate', async () => {
      await probe.connect();
      const version = probe.client.getNegotiatedProtocolVersion();
      must(version === MODERN, `negotiated ${version}`);
    });
    await probe.client.close();
    const peer = v2Peer(new v2.StreamableHTTPClientTransport(url, sent), { pin: MODERN });
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await peer.client.close();
  },
  'v2-default': (name) => choosing(name, v2Peer(new v2.StreamableHTTPClientTransport(url, sent))),
  'v2-auto': (name) => choosing(name, v2Peer(new v2.StreamableHTTPClientTransport(url, sent), 'auto')),
  'ai-sdk-1': (name) => choosing(name, ai1Peer(url, globalThis, headers)),
  'ai-sdk': (name) => choosing(name, ai2Peer(url, globalThis, headers)),
  inspector: (name) => inspected(name),
  'inspector-modern': (name) => inspected(name, 'modern')
};

for (const name of options.clients.split(',')) {
  must(clients[name], `unknown client ${name}`);
  await clients[name](name);
}
if (options.json) writeFileSync(options.json, `${JSON.stringify({ url: options.url, results }, null, 2)}\n`);
finish();
