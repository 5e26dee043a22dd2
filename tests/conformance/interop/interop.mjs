#!/usr/bin/env node
// Drives @modelcontextprotocol/server-everything behind a URL with real clients.
//
//   node interop/interop.mjs --url URL [--sse-url URL] [--clients LIST] [--without CHECKS] [--header 'N: V'] [--json FILE]
//
// Clients (all by default): v1-http and v1-sse (SDK v1), v2-legacy and v2-modern (SDK v2 in either
// era), v2-default and v2-auto (SDK v2 that chooses the era itself), ai-sdk (that of the AI SDK, which does so
// too), inspector (its CLI). v1-sse needs --sse-url, inspector needs `npm ci` in this folder;
// without, they are skipped. --without names checks to skip, comma-separated.

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import { createMCPClient } from '@ai-sdk/mcp';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' }, 'sse-url': { type: 'string' }, json: { type: 'string' },
    header: { type: 'string', multiple: true, default: [] },
    without: { type: 'string', default: '' },
    clients: { type: 'string', default: 'v1-http,v1-sse,v2-legacy,v2-modern,v2-default,v2-auto,ai-sdk,inspector' }
  }
});
if (!options.url) {
  console.error('usage: interop.mjs --url URL [--sse-url URL] [--clients LIST]');
  process.exit(2);
}
const url = new URL(options.url);
const headers = Object.fromEntries(options.header.map((line) => line.match(/^([^:]+):\s*(.*)$/s).slice(1)));

const LIMIT = 30_000; // per check
const ROOT = 'file:///interop/root';
const DOCUMENT = 'demo://resource/static/document/architecture.md';

class Skip extends Error {}
const skip = (reason) => { throw new Skip(reason); };
function must(condition, complaint) {
  if (!condition) throw new Error(complaint);
}
async function until(condition, complaint, limit = 10_000) {
  for (const end = Date.now() + limit; !condition(); await sleep(20)) must(Date.now() < end, complaint);
}

const results = [];
const unwanted = new Set(options.without.split(','));
async function check(client, name, run) {
  let timer;
  if (unwanted.has(name)) run = async () => skip('not asked for');
  const outcome = await Promise.race([
    run().then(() => ['pass'], (error) => (error instanceof Skip ? ['skip', error.message] : ['FAIL', error.message])),
    new Promise((resolve) => { timer = setTimeout(resolve, LIMIT, ['FAIL', `no end after ${LIMIT} ms`]); })
  ]);
  clearTimeout(timer);
  results.push({ client, name, outcome: outcome[0].toLowerCase(), ...(outcome[1] && { message: outcome[1] }) });
  console.log(`${outcome[0]}  ${client.padEnd(10)}  ${name}${outcome[1] ? `: ${outcome[1].split('\n')[0].slice(0, 300)}` : ''}`);
  return outcome[0] === 'pass';
}

// A fetch whose connections can be cut.
function severable() {
  const open = new Set();
  return {
    async fetch(target, init = {}) {
      const knife = new AbortController();
      open.add(knife);
      return fetch(target, { ...init, signal: init.signal ? AbortSignal.any([init.signal, knife.signal]) : knife.signal });
    },
    cut() {
      for (const knife of open) knife.abort(new Error('cut by the test'));
      open.clear();
    }
  };
}

const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
const info = { name: 'interop', version: '1.0.0' };

// Answers to what the server may ask; `asked` records it.
const answers = {
  'sampling/createMessage': () => ({ role: 'assistant', model: 'interop-model', content: { type: 'text', text: 'sampled by interop' } }),
  'elicitation/create': () => ({ action: 'accept', content: { name: 'Interop Tester', check: true } }),
  'roots/list': () => ({ roots: [{ uri: ROOT, name: 'interop root' }] })
};

// Both SDKs behind the same few functions.
function v1Client(transport) {
  const client = new v1.Client(info, { capabilities });
  const asked = [];
  const updates = [];
  const requests = {
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'elicitation/create': types.ElicitRequestSchema,
    'roots/list': types.ListRootsRequestSchema
  };
  for (const [method, schema] of Object.entries(requests)) {
    client.setRequestHandler(schema, (request) => (asked.push(request), answers[method]()));
  }
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => { updates.push(params.uri); });
  return {
    client, transport, asked, updates, connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, undefined, { timeout: LIMIT, ...extra }),
    async watch(uri) {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    }
  };
}

function v2Client(transport, mode) {
  const client = new v2.Client(info, { capabilities, ...(mode && { versionNegotiation: { mode } }) });
  const asked = [];
  const updates = [];
  for (const [method, reply] of Object.entries(answers)) {
    client.setRequestHandler(method, (request) => (asked.push(request), reply()));
  }
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => { updates.push(params.uri); });
  return {
    client, transport, asked, updates, retries: mode !== 'legacy', connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, { timeout: LIMIT, ...extra }),
    async watch(uri) {
      if (mode === 'legacy') {
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
      }
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      must(subscription.honoredFilter.resourceSubscriptions?.includes(uri), 'the subscription was not honored');
      return () => subscription.close();
    }
  };
}

// SDK v1 drops a progress notification that arrives right before the result, so the last is optional.
// SDK v2 tells the last progress once more when it tries again: a server that starts may ask for roots during any call.
function mustProgress(peer, told, steps) {
  const seen = peer.retries ? told.filter((step, n) => step !== told[n - 1]) : told;
  const wanted = Array.from({ length: seen.length }, (_, n) => n + 1);
  must(seen.join() === wanted.join() && seen.length >= steps - 1 && seen.length <= steps,
    `progress was ${seen.join() || 'missing'} of ${steps}`);
}

const textOf = (result) => result.content.map((part) => part.text ?? '').join('');

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
    const outcome = await peer.call('no-such-tool', {}).then((reply) => reply.isError === true, () => true);
    must(outcome, 'calling a tool that is not there succeeded');
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
    const unwatch = await peer.watch(DOCUMENT);
    await peer.call('toggle-subscriber-updates', {}); // starts the updates
    try {
      await until(() => peer.updates.includes(DOCUMENT), 'no update arrived');
    } finally {
      await peer.call('toggle-subscriber-updates', {}); // stops them
      await unwatch();
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

const reconnectionOptions = {
  initialReconnectionDelay: 100, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.5, maxRetries: 10
};
const sent = { requestInit: { headers } };

// A client that chooses the era itself: it must get through. What works in an era, the others show.
async function choosing(name, peer) {
  if (!await check(name, 'connect', peer.connect)) return;
  await basics(name, peer);
  await peer.client.close();
}

const clients = {
  async 'v1-http'(name) {
    const wire = severable();
    const open = (extra) => v1Client(new StreamableHTTPClientTransport(url, { ...sent, fetch: wire.fetch, reconnectionOptions, ...extra }));
    const peer = open();
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await sessions(name, peer, wire, open);
    await terminate(name, peer);
    await peer.client.close();
  },
  async 'v1-sse'(name) {
    if (!options['sse-url']) return check(name, 'connect', async () => skip('no --sse-url'));
    const peer = v1Client(new SSEClientTransport(new URL(options['sse-url']), sent));
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await peer.client.close();
  },
  async 'v2-legacy'(name) {
    const peer = v2Client(new v2.StreamableHTTPClientTransport(url, { ...sent, reconnectionOptions }), 'legacy');
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await terminate(name, peer);
    await peer.client.close();
  },
  async 'v2-modern'(name) {
    const probe = v2Client(new v2.StreamableHTTPClientTransport(url, sent), 'auto');
    await check(name, 'negotiate', async () => {
      await probe.connect();
      const version = probe.client.getNegotiatedProtocolVersion();
      must(version === '2026-07-28', `negotiated ${version}`);
    });
    await probe.client.close();
    const peer = v2Client(new v2.StreamableHTTPClientTransport(url, sent), { pin: '2026-07-28' });
    if (!await check(name, 'connect', peer.connect)) return;
    await common(name, peer);
    await peer.client.close();
  },
  'v2-default': (name) => choosing(name, v2Client(new v2.StreamableHTTPClientTransport(url, sent))),
  'v2-auto': (name) => choosing(name, v2Client(new v2.StreamableHTTPClientTransport(url, sent), 'auto')),
  async 'ai-sdk'(name) {
    const peer = {
      connect: async () => { peer.client = await createMCPClient({ transport: { type: 'http', url: url.href, headers } }); },
      call: (tool, args) => peer.client.callTool({ name: tool, arguments: args, options: { timeout: LIMIT } })
    };
    await choosing(name, peer);
  },
  async inspector(name) {
    const launcher = fileURLToPath(new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
    if (!existsSync(launcher)) return check(name, 'tools/list', async () => skip('not installed'));
    const home = mkdtempSync(join(tmpdir(), 'inspector-'));
    const inspect = async (...args) => {
      const command = [launcher, '--cli', url.href, '--transport', 'http',
        ...options.header.flatMap((line) => ['--header', line]), ...args];
      const settings = { env: { ...process.env, HOME: home }, maxBuffer: 1 << 24 };
      const { stdout } = await promisify(execFile)(process.execPath, command, settings)
        .catch((error) => { throw new Error(error.stderr?.trim() || error.message); });
      return JSON.parse(stdout);
    };
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
    rmSync(home, { recursive: true, force: true });
  }
};

for (const name of options.clients.split(',')) {
  must(clients[name], `unknown client ${name}`);
  await clients[name](name);
}
if (options.json) writeFileSync(options.json, `${JSON.stringify({ url: options.url, results }, null, 2)}\n`);
const count = (outcome) => results.filter((result) => result.outcome === outcome).length;
if (count('skip')) console.log(`${count('skip')} skipped`);
console.log(`${count('pass')} passed, ${count('fail')} failed`);
process.exit(count('fail') ? 1 : 0);
