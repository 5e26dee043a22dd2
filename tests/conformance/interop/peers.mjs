// Real clients behind the same few functions. What a client does not have is not in its `can`; what it has and does wrong
// is in its `lacks`, with the reason; `resumes` if it comes back for answers whose connection was lost.

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import * as ai1 from 'ai-sdk-mcp-1';
import * as ai2 from '@ai-sdk/mcp';
import { LIMIT, must } from './report.mjs';

export const MODERN = '2026-07-28';
export const ROOT = 'file:///interop/root';
export const reconnectionOptions = {
  initialReconnectionDelay: 100, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.5, maxRetries: 10
};

const info = { name: 'interop', version: '1.0.0' };
const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
const everything = ['progress', 'sampling', 'elicitation', 'roots', 'watch'];

// Answers to what a server may ask. A peer's `answers` may be changed, `asked` has what came.
const defaults = {
  'sampling/createMessage': () => ({ role: 'assistant', model: 'interop-model', content: { type: 'text', text: 'sampled by interop' } }),
  'elicitation/create': () => ({ action: 'accept', content: { name: 'Interop Tester', check: true } }),
  'roots/list': () => ({ roots: [{ uri: ROOT, name: 'interop root' }] })
};

// A fetch whose connections can be cut.
export function severable() {
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

function record(more) {
  const peer = { asked: [], updates: [], changes: 0, answers: { ...defaults }, can: new Set(everything), lacks: {}, resumes: true, ...more };
  peer.answer = (request) => (peer.asked.push(request), peer.answers[request.method]());
  return peer;
}

// resources/subscribe, as all revisions before 2026-07-28 have it.
async function subscribe(client, uri) {
  await client.subscribeResource({ uri });
  return { close: () => client.unsubscribeResource({ uri }) };
}

// SDK v1.
export function v1Peer(transport) {
  const client = new v1.Client(info, { capabilities });
  const peer = record({
    client, transport, modern: () => false,
    connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, undefined, { timeout: LIMIT, ...extra }),
    watch: (uri) => subscribe(client, uri)
  });
  for (const schema of [types.CreateMessageRequestSchema, types.ElicitRequestSchema, types.ListRootsRequestSchema]) {
    client.setRequestHandler(schema, peer.answer);
  }
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => { peer.updates.push(params.uri); });
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => { peer.changes++; });
  return peer;
}

// SDK v2; without a mode it does what it does by itself.
export function v2Peer(transport, mode) {
  const client = new v2.Client(info, { capabilities, ...(mode && { versionNegotiation: { mode } }) });
  const modern = () => client.getNegotiatedProtocolVersion() === MODERN;
  const peer = record({
    client, transport, modern,
    connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, { timeout: LIMIT, ...extra }),
    async watch(uri) {
      if (!modern()) return subscribe(client, uri);
      const subscription = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
      must(subscription.honoredFilter.resourceSubscriptions?.includes(uri), 'the subscription was not honored');
      return subscription;
    }
  });
  for (const method of Object.keys(defaults)) client.setRequestHandler(method, peer.answer);
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => { peer.updates.push(params.uri); });
  client.setNotificationHandler('notifications/tools/list_changed', () => { peer.changes++; });
  return peer;
}

// The AI SDK's MCP client. Of what servers ask it knows forms alone, and it takes no notifications.
function aiPeer({ createMCPClient, ElicitationRequestSchema }, url, { fetch } = globalThis, headers = {}) {
  const peer = record({
    can: new Set(['elicitation']), resumes: false,
    modern: () => peer.client.initializeResult?.protocolVersion === MODERN,
    async connect() {
      peer.client = await createMCPClient({
        transport: { type: 'http', url: url.href, headers, fetch }, capabilities: { elicitation: {} }
      });
      peer.client.onElicitationRequest(ElicitationRequestSchema, peer.answer);
      peer.client.listPrompts ??= peer.client.experimental_listPrompts;
      peer.client.getPrompt ??= peer.client.experimental_getPrompt;
    }
  });
  return peer;
}

// Version 1 calls tools as functions only.
export function ai1Peer(url, wire, headers) {
  const peer = aiPeer(ai1, url, wire, headers);
  peer.lacks.unlisted = 'it calls what is listed, and nothing else';
  peer.lacks.cancel = 'its signal ends the request, and no notifications/cancelled is sent';
  peer.call = async (name, args, { signal } = {}) => {
    const { [name]: tool } = await peer.client.tools();
    must(tool, `there is no ${name}`);
    return tool.execute(args, { messages: [], toolCallId: name, abortSignal: signal });
  };
  return peer;
}

export function ai2Peer(url, wire, headers) {
  const peer = aiPeer(ai2, url, wire, headers);
  peer.call = (name, args, { signal } = {}) =>
    peer.client.callTool({ name, arguments: args, options: { timeout: LIMIT, ...(signal && { signal }) } });
  return peer;
}

const launcher = fileURLToPath(new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));

// The Inspector's command line: a process for each request, in an empty home. Not there without `npm ci` in this folder.
export const inspectorInstalled = () => existsSync(launcher);

export function inspector(url, { headers = [], era } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'inspector-'));
  return {
    async inspect(...args) {
      const command = [launcher, '--cli', url.href, '--transport', 'http', ...(era ? ['--protocol-era', era] : []),
        ...headers.flatMap((line) => ['--header', line]), ...args];
      const settings = { env: { ...process.env, HOME: home }, maxBuffer: 1 << 24, timeout: LIMIT };
      const { stdout } = await promisify(execFile)(process.execPath, command, settings)
        .catch((error) => { throw new Error(error.stderr?.trim() || error.message); });
      return JSON.parse(stdout);
    },
    close: () => rmSync(home, { recursive: true, force: true })
  };
}
