// An MCP server on standard input and output whose tools say everything that they were given: its environment,
// its arguments, and every line that it has read. Tools: plain, write, admin, leak.
import readline from 'node:readline';

const lines = [];
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const tools = {
  plain: () => text('plain'),
  write: () => text('written'),
  admin: () => text('administered'),
  leak: () => text(JSON.stringify({ environment: process.env, arguments: process.argv, lines })),
};

const answers = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'leaky', version: '1' } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) }),
  'tools/call': (params) => tools[params.name]?.(),
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  lines.push(line);
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answers[method]?.(params ?? {});
  say(result ? { id, result } : { id, error: { code: -32601, message: 'there is no such method or tool' } });
});
