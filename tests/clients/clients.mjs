// Every client behind the same three functions: list() names the tools, call(tool, args, onprogress) gives the text of the
// answer, close(). A client's name is that of its package here: kind and version (package.json).

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EventSource } from 'eventsource';
import { LIMIT } from '../conformance/interop/report.mjs';

const info = { name: 'clients', version: '1.0.0' };
const NEWEST = 'sdk-1.32'; // lends a transport to clients that have none, and speaks to bridges
const home = mkdtempSync(join(tmpdir(), 'clients-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));

// They speak to the gateway and to nobody else.
Object.assign(process.env, {
  HOME: home, MCP_REMOTE_CONFIG_DIR: home, MCP_USE_ANONYMIZED_TELEMETRY: 'false', MASTRA_TELEMETRY_DISABLED: '1',
  OPENAI_AGENTS_DISABLE_TRACING: '1', OPENAI_API_KEY: 'none', DO_NOT_TRACK: '1', SCARF_ANALYTICS: 'false', LANGSMITH_TRACING: 'false'
});
globalThis.EventSource ??= EventSource; // SDK 1.0 takes a browser's

const textOf = (content) => {
  if (Array.isArray(content)) return content.map((part) => part.text ?? '').join('');
  return typeof content === 'string' ? content : JSON.stringify(content);
};
const failing = (result) => {
  if (result.isError) throw new Error(textOf(result.content));
  return textOf(result.content);
};
const settings = { timeout: LIMIT, resetTimeoutOnProgress: true };
const reconnectionOptions = { initialReconnectionDelay: 100, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.5, maxRetries: 10 };

async function transportOf(name, url, way) {
  if (way === 'sse') return new (await import(`${name}/client/sse.js`)).SSEClientTransport(url);
  const { StreamableHTTPClientTransport } = await import(`${name}/client/streamableHttp.js`);
  return new StreamableHTTPClientTransport(url, { reconnectionOptions });
}

async function openSdk(name, transport) {
  const { Client } = await import(`${name}/client/index.js`);
  const client = new Client(info, { capabilities: {} });
  await client.connect(transport);
  return {
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (tool, args, onprogress) =>
      failing(await client.callTool({ name: tool, arguments: args }, undefined, { ...settings, onprogress })),
    close: () => client.close()
  };
}

const sdk = async (name, url, way) => openSdk(name, await transportOf(name, url, way));

const client2 = (mode) => async (name, url, way) => {
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await import(name.replace(/ .*/, ''));
  const client = new Client(info, { capabilities: {}, ...(mode && { versionNegotiation: { mode } }) });
  await client.connect(way === 'sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url, { reconnectionOptions }));
  return {
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (tool, args, onprogress) => failing(await client.callTool({ name: tool, arguments: args }, { ...settings, onprogress })),
    close: () => client.close()
  };
};

// The AI SDK's tools are functions for a model.
async function ai(name, url, way) {
  const module = await import(name);
  const create = module.createMCPClient ?? module.experimental_createMCPClient;
  const own = name.startsWith('ai-sdk') || way === 'sse';
  const client = await create({ transport: own ? { type: way, url: url.href } : await transportOf(NEWEST, url, way) });
  return {
    list: async () => Object.keys(await client.tools()),
    call: async (tool, args) => failing(await (await client.tools())[tool].execute(args, { messages: [], toolCallId: tool })),
    close: () => client.close()
  };
}

async function langchain(name, url, way) {
  const { MultiServerMCPClient } = await import(name);
  let told;
  const client = new MultiServerMCPClient({
    mcpServers: { s: { transport: way, url: url.href, automaticSSEFallback: false, reconnect: { enabled: true, maxAttempts: 5, delayMs: 100 } } },
    throwOnLoadError: true, prefixToolNameWithServerName: false, onProgress: (step) => told?.(step)
  });
  const tools = await client.getTools();
  return {
    list: async () => tools.map((tool) => tool.name),
    async call(tool, args, onprogress) {
      told = onprogress;
      return textOf(await tools.find((one) => one.name === tool).invoke(args));
    },
    close: () => client.close()
  };
}

let mastras = 0;
async function mastra(name, url) {
  const { MCPClient } = await import(name);
  const client = new MCPClient({ id: `clients-${mastras++}`, timeout: LIMIT, servers: { s: { url, connectTimeout: LIMIT, enableProgressTracking: false } } });
  const tools = await client.listTools();
  return {
    list: async () => Object.keys(tools).map((tool) => tool.replace(/^s_/, '')),
    async call(tool, args) {
      const result = await tools[`s_${tool}`].execute(args, {});
      return result.content ? failing(result) : JSON.stringify(result);
    },
    close: () => client.disconnect()
  };
}

async function agents(name, url, way) {
  const { MCPServerSSE, MCPServerStreamableHttp } = await import(name);
  const server = new (way === 'sse' ? MCPServerSSE : MCPServerStreamableHttp)({ url: url.href, name: 's', reconnectionOptions, timeout: LIMIT });
  await server.connect();
  return {
    list: async () => (await server.listTools()).map((tool) => tool.name),
    call: async (tool, args) => textOf(await server.callTool(tool, args)),
    close: () => server.close()
  };
}

async function mcpUse(name, url, way) {
  const { MCPClient } = await import(name);
  const client = MCPClient.fromDict({ mcpServers: { s: { url: url.href, preferSse: way === 'sse' } } });
  const session = await client.createSession('s');
  return {
    list: async () => session.connector.tools.map((tool) => tool.name),
    call: async (tool, args) => failing(await session.connector.callTool(tool, args)),
    close: () => client.closeAllSessions()
  };
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
async function mcporter(name, url) {
  const { createRuntime } = await import(name);
  const runtime = await createRuntime({ servers: [{ name: 's', command: { kind: 'http', url } }], logger: quiet });
  return {
    list: async () => (await runtime.listTools('s')).map((tool) => tool.name),
    call: async (tool, args) => failing(await runtime.callTool('s', tool, { args, timeoutMs: LIMIT })),
    close: () => runtime.close()
  };
}

const folderOf = (name) => join(import.meta.dirname, 'node_modules', name);
const binOf = (name) => {
  const { bin } = JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8'));
  return join(folderOf(name), Object.values(bin)[0]);
};

// A process for each request.
async function inspector(name, url, way) {
  const transport = /0\.1[04]$/.test(name) ? [] : ['--transport', way];
  const inspect = async (...args) => {
    const { stdout } = await promisify(execFile)(process.execPath, [binOf(name), '--cli', url.href, ...transport, ...args], { timeout: LIMIT })
      .catch((error) => { throw new Error(error.stderr?.trim() || error.message); });
    return JSON.parse(stdout);
  };
  return {
    list: async () => (await inspect('--method', 'tools/list')).tools.map((tool) => tool.name),
    call: async (tool, args) => failing(await inspect('--method', 'tools/call', '--tool-name', tool,
      ...Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]))),
    close: async () => {}
  };
}

// A server over standard input and output for the client above.
const bridge = (argsOf) => async (name, url, way) => {
  const { StdioClientTransport } = await import(`${NEWEST}/client/stdio.js`);
  return openSdk(NEWEST, new StdioClientTransport({
    command: process.execPath, args: [binOf(name), ...argsOf(url.href, way)], env: process.env, stderr: 'ignore'
  }));
};
const remote = bridge((url, way) => [url, '--allow-http', '--transport', `${way}-only`]);
const supergateway = bridge((url, way) => [way === 'sse' ? '--sse' : '--streamableHttp', url, '--logLevel', 'none']);

const both = ['http', 'sse'];

// Name, how it is opened, its transports, whether it can be told of progress, and the servers if it is not for all.
// Mastra tries HTTP first, and at an address that takes no POST nothing else; supergateway passes no notifications on.
export const clients = [
  { name: 'sdk-1.0', open: sdk, ways: ['sse'], progress: true },
  { name: 'sdk-1.11', open: sdk, ways: both, progress: true },
  { name: 'sdk-1.17', open: sdk, ways: both, progress: true },
  { name: 'sdk-1.32', open: sdk, ways: both, progress: true },
  { name: 'client-2.0', open: client2(), ways: both, progress: true },
  { name: 'client-2.0 auto', open: client2('auto'), ways: ['http'], progress: true },
  { name: 'client-2.4', open: client2(), ways: both, progress: true },
  { name: 'client-2.4 auto', open: client2('auto'), ways: ['http'], progress: true },
  { name: 'ai-4', open: ai, ways: both },
  { name: 'ai-5', open: ai, ways: both },
  { name: 'ai-sdk-mcp-0', open: ai, ways: both },
  { name: 'ai-sdk-mcp-1', open: ai, ways: both },
  { name: 'ai-sdk-mcp-2', open: ai, ways: both },
  { name: 'langchain-1.0', open: langchain, ways: both, progress: true },
  { name: 'langchain-1.1', open: langchain, ways: both, progress: true },
  { name: 'mastra-2.0', open: mastra, ways: ['http'] },
  { name: 'mcp-use-0.1', open: mcpUse, ways: both },
  { name: 'agents-0.3', open: agents, ways: both },
  { name: 'agents-0.20', open: agents, ways: both },
  { name: 'mcporter-0.9', open: mcporter, ways: both },
  { name: 'mcporter-0.12', open: mcporter, ways: both },
  { name: 'inspector-cli-0.10', open: inspector, ways: ['sse'], servers: ['demo'] }, // whatever their URL, these two ask for /sse
  { name: 'inspector-cli-0.14', open: inspector, ways: ['sse'], servers: ['demo'] },
  { name: 'inspector-cli-0.16', open: inspector, ways: both, servers: ['demo', 'everything'] },
  { name: 'mcp-remote-0.1.18', open: remote, ways: both, progress: true, servers: ['demo', 'files'] },
  { name: 'mcp-remote-0.1.37', open: remote, ways: both, progress: true, servers: ['demo', 'files'] },
  { name: 'mcp-remote-0.15', open: remote, ways: both, progress: true, servers: ['demo', 'files'] },
  { name: 'supergateway-3', open: supergateway, ways: both, servers: ['demo', 'files'] },
  { name: 'supergateway-4', open: supergateway, ways: both, servers: ['demo', 'files'] }
];

// The packages that are loaded into this process: while that happens nothing else does, and what comes meanwhile comes at once.
export async function load(wanted) {
  const processes = [sdk, inspector, remote, supergateway];
  for (const { name, open } of wanted) if (!processes.includes(open)) await import(name.replace(/ .*/, ''));
}
