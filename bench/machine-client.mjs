// SPDX-License-Identifier: Apache-2.0
// One client of machine.py: connects to every server of a file as Cursor has it, calls each once, and stays until standard input ends.
//
//   node machine-client.mjs NODE_MODULES FILE
//
// Each line on standard output is the time of one first call, from the begin of its connection, in milliseconds.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [, , modules, file] = process.argv;
const sdk = (path) => import(join(modules, 'sdk-1.32', 'dist', 'esm', 'client', path));
const { Client } = await sdk('index.js');
const { StdioClientTransport } = await sdk('stdio.js');
const { StreamableHTTPClientTransport } = await sdk('streamableHttp.js');

const calls = { everything: ['echo', { message: 'hello' }], memory: ['read_graph', {}], files: ['list_allowed_directories', {}] };
const transportOf = ({ url, headers, command, args, env }) =>
  url ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) :
    new StdioClientTransport({ command, args, env: { ...process.env, ...env }, stderr: 'ignore' });

async function use([name, entry]) {
  const began = performance.now();
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transportOf(entry));
  const [tool, args] = calls[name.split('-')[0]];
  const result = await client.callTool({ name: tool, arguments: args });
  if (result.isError) throw new Error(`${name}: ${JSON.stringify(result)}`);
  console.log(performance.now() - began);
}

await Promise.all(Object.entries(JSON.parse(readFileSync(file, 'utf8')).mcpServers).map(use));
process.stdin.on('end', () => process.exit(0)).resume();
