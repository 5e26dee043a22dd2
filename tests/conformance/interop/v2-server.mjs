#!/usr/bin/env node
// A stdio MCP server as one writes it with SDK v2: McpServer, serveStdio, input_required by the SDK's helpers.
//
//   node interop/v2-server.mjs DIR [--modern]
//
// It answers in either era, as the SDK does by itself; with --modern an `initialize` is refused. All that it remembers
// is in files below DIR, which its processes share and the test reads: note.txt is the resource note://text, extra makes
// one more tool (both are watched, and may be changed by anybody), journal.txt has a line for each call that was cancelled.

import { appendFileSync, existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer, acceptedContent, createRequestStateCodec, fromJsonSchema, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [directory, mode] = process.argv.slice(2);
const note = join(directory, 'note.txt');
const extra = join(directory, 'extra');
const journal = join(directory, 'journal.txt');

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const object = (properties = {}) => fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
const string = { type: 'string' };
const number = { type: 'number' };

// A fixed key, so that any process of this server can take up a retry.
const states = createRequestStateCodec({ key: new Uint8Array(32).fill(7), ttlSeconds: 600, bind: ({ mcpReq }) => mcpReq.method });

const asName = inputRequired.elicit({
  message: 'What is your name?', requestedSchema: { type: 'object', properties: { name: string }, required: ['name'] }
});
const asPoem = (name) => inputRequired.createMessage({
  messages: [{ role: 'user', content: { type: 'text', text: `A poem for ${name}` } }], maxTokens: 50
});

async function count({ steps, pause, name }, { mcpReq }) {
  const progressToken = mcpReq._meta?.progressToken;
  appendFileSync(journal, `begun ${name}\n`);
  try {
    for (let progress = 1; progress <= steps; progress++) {
      await sleep(pause, undefined, { signal: mcpReq.signal });
      if (progressToken === undefined) continue;
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
    }
    await sleep(pause, undefined, { signal: mcpReq.signal });
  } catch (error) {
    if (mcpReq.signal.aborted) appendFileSync(journal, `cancelled ${name}\n`);
    throw error;
  }
  return text(`counted to ${steps}`);
}

function askName(_, { mcpReq }) {
  const reply = inputResponse(mcpReq.inputResponses, 'name');
  if (reply.kind !== 'elicit') return inputRequired({ inputRequests: { name: asName } });
  return text(reply.action === 'accept' ? `you are ${reply.content.name}` : `you chose ${reply.action}`);
}

function askPoem(_, { mcpReq }) {
  const reply = inputResponse(mcpReq.inputResponses, 'poem');
  if (reply.kind !== 'sampling') return inputRequired({ inputRequests: { poem: asPoem('nobody') } });
  return text(`the poem: ${[reply.result.content].flat()[0].text}`);
}

function askRoots(_, { mcpReq }) {
  const reply = inputResponse(mcpReq.inputResponses, 'roots');
  if (reply.kind !== 'roots') return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  return text(`the roots: ${reply.roots.map(({ uri }) => uri).join(' ')}`);
}

// Two rounds: what the first one brought travels in the request state.
async function interview(_, context) {
  const { inputResponses, requestState } = context.mcpReq;
  const name = requestState()?.name ?? acceptedContent(inputResponses, 'name')?.name;
  if (name === undefined) return inputRequired({ inputRequests: { name: asName } });
  const reply = inputResponse(inputResponses, 'poem');
  if (reply.kind === 'sampling') return text(`${name}: ${[reply.result.content].flat()[0].text}`);
  return inputRequired({ inputRequests: { poem: asPoem(name) }, requestState: await states.mint({ name }, context) });
}

function welcome({ mcpReq }) { // without arguments, a prompt gets the context alone
  const name = acceptedContent(mcpReq.inputResponses, 'name')?.name;
  if (name === undefined) return inputRequired({ inputRequests: { name: asName } });
  return { messages: [{ role: 'user', content: { type: 'text', text: `Welcome ${name}` } }] };
}

function registerTools(server) {
  const tool = (name, description, inputSchema, run) => server.registerTool(name, { description, inputSchema }, run);
  tool('echo', 'Returns the message', object({ message: string }), ({ message }) => text(`Echo: ${message}`));
  server.registerTool('add', {
    description: 'The sum of two numbers', inputSchema: object({ a: number, b: number }), outputSchema: object({ sum: number })
  }, ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } }));
  tool('fail', 'Throws', object(), () => { throw new Error('as it was told'); });
  tool('exit', 'Ends the process without an answer', object(), () => process.exit(3));
  tool('count', 'Counts, and tells how far it is', object({ steps: number, pause: number, name: string }), count);
  tool('ask-name', 'Asks for a name', object(), askName);
  tool('ask-poem', 'Asks for a poem', object(), askPoem);
  tool('ask-roots', 'Asks for the roots', object(), askRoots);
  tool('interview', 'Asks for a name, then for a poem', object(), interview);
  tool('write-note', 'Changes note://text', object({ value: string }), ({ value }) => (writeFileSync(note, value), text('written')));
  return tool('extra', 'There while a file is', object(), () => text('extra'));
}

serveStdio(() => {
  const server = new McpServer({ name: 'interop-v2', version: '1.0.0' }, {
    capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true }, prompts: {} },
    instructions: 'Call anything.', requestState: { verify: states.verify }
  });
  const extraTool = registerTools(server);
  if (!existsSync(extra)) extraTool.disable();
  server.registerPrompt('welcome', { description: 'Asks for a name' }, welcome);
  server.registerPrompt('greet', { description: 'A greeting', argsSchema: object({ name: string }) },
    ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }] }));
  server.registerResource('note', 'note://text', { mimeType: 'text/plain' },
    ({ href }) => ({ contents: [{ uri: href, mimeType: 'text/plain', text: readFileSync(note, 'utf8') }] }));

  // McpServer leaves the subscriptions of 2025-11-25 to its user.
  const wanted = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => (wanted.add(params.uri), {}));
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (wanted.delete(params.uri), {}));
  const modern = () => server.server.getNegotiatedProtocolVersion?.() === '2026-07-28';
  watch(directory, { persistent: false }, (_, name) => {
    if (name === 'note.txt' && (modern() || wanted.has('note://text'))) server.server.sendResourceUpdated({ uri: 'note://text' });
    if (name === 'extra' && existsSync(extra) !== extraTool.enabled) extraTool[extraTool.enabled ? 'disable' : 'enable']();
  });
  return server;
}, mode === '--modern' ? { legacy: 'reject' } : {});
