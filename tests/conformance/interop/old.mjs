#!/usr/bin/env node
// Drives a server of 2024-11-05 behind a gateway with clients of today, over both transports.
//
//   node interop/old.mjs --url URL --sse-url URL
//
// The server is @modelcontextprotocol/server-everything 0.6.2, whose SDK knows no other revision.

import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';

const { values: options } = parseArgs({ options: { url: { type: 'string' }, 'sse-url': { type: 'string' } } });
if (!options.url || !options['sse-url']) {
  console.error('usage: old.mjs --url URL --sse-url URL');
  process.exit(2);
}

const LIMIT = 30_000; // per call
const info = { name: 'interop-old', version: '1.0.0' };
const capabilities = { sampling: {} };
const count = { pass: 0, FAIL: 0 };

function must(condition, complaint) {
  if (!condition) throw new Error(complaint);
}

async function check(name, run) {
  const outcome = await run().then(() => ['pass'], (error) => ['FAIL', error.message]);
  count[outcome[0]]++;
  console.log(`${outcome[0]}  ${name}${outcome[1] ? `: ${outcome[1].split('\n')[0].slice(0, 300)}` : ''}`);
}

let asked = 0;
const sampled = () => (asked++, { role: 'assistant', model: 'interop-model', content: { type: 'text', text: 'sampled by interop' } });

function v1Peer(transport) {
  const client = new Client(info, { capabilities });
  client.setRequestHandler(types.CreateMessageRequestSchema, sampled);
  return {
    client, connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, undefined, { timeout: LIMIT, ...extra })
  };
}

function v2Peer(transport) {
  const client = new v2.Client(info, { capabilities, versionNegotiation: { mode: 'legacy' } });
  client.setRequestHandler('sampling/createMessage', sampled);
  return {
    client, connect: () => client.connect(transport),
    call: (name, args, extra) => client.callTool({ name, arguments: args }, { timeout: LIMIT, ...extra })
  };
}

const textOf = (result) => result.content.map((part) => part.text ?? '').join('');

async function drive(name, { client, connect, call }) {
  await check(`${name}: connect`, connect);
  await check(`${name}: tools`, async () => {
    const tools = (await client.listTools()).tools.map((tool) => tool.name);
    must(tools.includes('sampleLLM'), `no sampleLLM among ${tools.join(', ')}`);
  });
  await check(`${name}: echo`, async () => {
    const message = 'line\nbreak, "quotes", ünïcödé, 漢字';
    must(textOf(await call('echo', { message })) === `Echo: ${message}`, 'the text came back changed');
  });
  await check(`${name}: calls at once`, async () => {
    const sums = await Promise.all(Array.from({ length: 20 }, (_, n) => call('add', { a: n, b: 1000 })));
    sums.forEach((sum, n) => must(textOf(sum).includes(`${n + 1000}`), `sum ${n} is ${textOf(sum)}`));
  });
  await check(`${name}: progress`, async () => {
    const seen = [];
    await call('longRunningOperation', { duration: 1, steps: 4 }, { onprogress: (step) => seen.push(step.progress) });
    must(seen.length >= 3 && seen.every((value, n) => value === n + 1), `progress was ${seen.join() || 'missing'}`);
  });
  await check(`${name}: cancel`, async () => {
    const stop = new AbortController();
    const lost = call('longRunningOperation', { duration: 20, steps: 2 }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 200);
    must(await lost.then(() => false, () => true), 'the call was not cancelled');
    must(textOf(await call('echo', { message: 'after' })) === 'Echo: after', 'no answer after the cancelled call');
  });
  await check(`${name}: sampling`, async () => {
    const before = asked;
    const reply = textOf(await call('sampleLLM', { prompt: 'hello', maxTokens: 20 }));
    must(asked === before + 1, 'the client was not asked');
    must(reply.startsWith('LLM sampling result'), `the server did not get the answer: ${reply}`);
  });
  await check(`${name}: image`, async () => {
    const { content } = await call('getTinyImage', {});
    must(content.some((part) => part.type === 'image' && part.data.length > 100), 'there is no image');
  });
  await check(`${name}: resources by pages`, async () => {
    const first = await client.listResources(); // SDK v2 gathers all pages itself
    const more = first.nextCursor ? (await client.listResources({ cursor: first.nextCursor })).resources : [];
    const uris = [...first.resources, ...more].map((entry) => entry.uri);
    must(uris.length > 10 && new Set(uris).size === uris.length, `the resources are ${uris.join()}`);
    must((await client.readResource({ uri: uris.at(-1) })).contents.length === 1, 'the last one cannot be read');
  });
  await check(`${name}: prompts`, async () => {
    must((await client.listPrompts()).prompts.some((prompt) => prompt.name === 'complex_prompt'), 'complex_prompt is not listed');
    const { messages } = await client.getPrompt({ name: 'complex_prompt', arguments: { temperature: '0.5' } });
    must(JSON.stringify(messages).includes('0.5'), 'the argument did not arrive');
  });
  await client.close();
}

await drive('SDK v1, HTTP', v1Peer(new StreamableHTTPClientTransport(new URL(options.url))));
await drive('SDK v1, HTTP+SSE', v1Peer(new SSEClientTransport(new URL(options['sse-url']))));
await drive('SDK v2, HTTP', v2Peer(new v2.StreamableHTTPClientTransport(new URL(options.url))));
console.log(`${count.pass} passed, ${count.FAIL} failed`);
process.exit(count.FAIL ? 1 : 0);
