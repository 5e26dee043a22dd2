#!/usr/bin/env node
// Drives two more servers behind a gateway with SDK v1: they keep state in files, and one asks for roots.
//
//   node interop/more.mjs [--filesystem URL --root DIR] [--memory URL]
//
// The first is @modelcontextprotocol/server-filesystem with DIR as its only argument, the second
// @modelcontextprotocol/server-memory with an empty store.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { values: options } = parseArgs({
  options: { filesystem: { type: 'string' }, root: { type: 'string' }, memory: { type: 'string' } }
});
if (!options.filesystem !== !options.root || !(options.filesystem || options.memory)) {
  console.error('usage: more.mjs [--filesystem URL --root DIR] [--memory URL]');
  process.exit(2);
}

const LIMIT = 30_000; // per call
const TEXT = 'first line\n"second" line, ünïcödé, 漢字\n';
const count = { pass: 0, FAIL: 0 };

function must(condition, complaint) {
  if (!condition) throw new Error(complaint);
}

async function check(name, run) {
  const outcome = await run().then(() => ['pass'], (error) => ['FAIL', error.message]);
  count[outcome[0]]++;
  console.log(`${outcome[0]}  ${name}${outcome[1] ? `: ${outcome[1].split('\n')[0].slice(0, 300)}` : ''}`);
}

// A client's session from connect to DELETE; call() gives the result's text and fails on isError.
async function session(name, url, use) {
  const client = new Client({ name: 'interop-more', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  const call = async (tool, args) => {
    const reply = await client.callTool({ name: tool, arguments: args }, undefined, { timeout: LIMIT });
    const text = reply.content.map((part) => part.text ?? '').join('');
    must(!reply.isError, `${tool}: ${text}`);
    return text;
  };
  await check(`${name}: connect`, () => client.connect(transport));
  await use({ client, call });
  await check(`${name}: end the session`, () => transport.terminateSession());
  await client.close();
}

const offers = ({ client }, ...wanted) => async () => {
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  for (const tool of wanted) must(tools.includes(tool), `no ${tool} among ${tools.join(', ')}`);
};

async function filesystem(peer) {
  const path = join(options.root, 'note.txt');
  await check('filesystem: list tools', offers(peer, 'write_file', 'read_text_file', 'list_directory'));
  await check('filesystem: write a file', async () => {
    await peer.call('write_file', { path, content: TEXT });
    must(readFileSync(path, 'utf8') === TEXT, 'the file holds something else');
  });
  await check('filesystem: read it back', async () => {
    must(await peer.call('read_text_file', { path }) === TEXT, 'another text came back');
  });
  await check('filesystem: list the directory', async () => {
    must((await peer.call('list_directory', { path: options.root })).includes('note.txt'), 'note.txt is not listed');
  });
  await check('filesystem: nothing outside of the root', async () => {
    const outcome = await peer.call('read_text_file', { path: '/etc/hostname' }).then(() => 'it was read', (error) => error.message);
    must(outcome.startsWith('read_text_file: '), outcome); // the server's word, not that of a connection which has ended
  });
}

const entities = [
  { name: 'Ada', entityType: 'person', observations: ['wrote the first program'] },
  { name: 'Engine', entityType: 'machine', observations: ['was never finished'] }
];

async function remember(peer) {
  await check('memory: list tools', offers(peer, 'create_entities', 'read_graph'));
  await check('memory: create entities', () => peer.call('create_entities', { entities }));
  await check('memory: relate them', () =>
    peer.call('create_relations', { relations: [{ from: 'Ada', to: 'Engine', relationType: 'programmed' }] }));
}

async function recall(peer) {
  await check('memory: another session reads the graph', async () => {
    const graph = JSON.parse(await peer.call('read_graph', {}));
    must(graph.entities.map(({ name }) => name).sort().join() === 'Ada,Engine', `the entities are ${JSON.stringify(graph.entities)}`);
    must(graph.relations.length === 1, 'the relation is missing');
  });
}

if (options.filesystem) await session('filesystem', options.filesystem, filesystem);
if (options.memory) {
  await session('memory', options.memory, remember);
  await session('memory', options.memory, recall);
}
console.log(`${count.pass} passed, ${count.FAIL} failed`);
process.exit(count.FAIL ? 1 : 0);
