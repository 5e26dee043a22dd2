#!/usr/bin/env node
// A server whose every text wants to be something else in a browser or a terminal: markup, another direction, colours.
// It answers what it is asked, and writes a line to standard error for each call.

import { createInterface } from 'node:readline';
import { texts } from './texts.mjs';

// The first changes after each call.
let calls = 0;
const tools = () => [
  { name: texts.tool, description: `${texts.description} ${calls}`, inputSchema: { type: 'object' } },
  { name: 'echo', description: 'Returns the text.', inputSchema: { type: 'object' } }
];

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: texts.name, version: '1' } }),
  'tools/list': () => ({ tools: tools() }),
  'tools/call': ({ arguments: given }) => {
    for (const line of texts.stderr) process.stderr.write(`${line}\n`);
    calls++;
    process.stdout.write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n');
    return { content: [{ type: 'text', text: String(given?.text) }] };
  }
};

for (const line of texts.stderr) process.stderr.write(`${line}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...(answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: 'no' } }) })}\n`);
}
