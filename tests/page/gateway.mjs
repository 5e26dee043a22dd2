// A gateway under test, its clients, and a way to its admin socket for a browser.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const TOKEN = 'the-operator';
const callerToken = (name) => sha256(`caller ${name}`);
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

export class Gateway {
  log = [];

  // bin: has mcpgated. With withToken orders may be given on the page.
  constructor(bin, folder, { servers, withToken = true, port, page, names = ['alice'] }) {
    Object.assign(this, { bin, folder, port, pagePort: page, socket: join(folder, 'admin.sock') });
    this.file = join(folder, 'mcpgated.yaml');
    writeFileSync(this.file, JSON.stringify({
      listen: [{ address: `127.0.0.1:${port}` }],
      admin: { address: `unix:${this.socket}`, page: `127.0.0.1:${page}`, ...(withToken && { page_token: sha256(TOKEN) }) },
      auth: { mode: 'token', tokens: names.map((name) => ({ name, sha256: sha256(callerToken(name)) })) },
      servers
    }));
    chmodSync(this.file, 0o600);
  }

  async start() {
    this.daemon = spawn(resolve(this.bin, 'mcpgated'), ['-c', this.file], { stdio: ['ignore', 'ignore', 'pipe'] });
    await new Promise((ready, reject) => {
      const late = setTimeout(() => reject(new Error(`the gateway does not get ready:\n${this.log.join('\n')}`)), 20_000);
      createInterface({ input: this.daemon.stderr }).on('line', (line) => {
        this.log.push(line);
        if (/ready: .* at http/.test(line)) {
          clearTimeout(late);
          ready();
        }
      });
      this.ended = new Promise((done) => this.daemon.on('exit', (code) => {
        done(code);
        clearTimeout(late);
        reject(new Error(`the gateway ended with ${code}:\n${this.log.join('\n')}`));
      }));
    });
  }

  get page() {
    return `http://127.0.0.1:${this.pagePort}/`;
  }

  // A port before the admin socket, as ssh -L makes one.
  async forward() {
    const server = createServer((client) => {
      const peer = connect(this.socket);
      client.on('error', () => peer.destroy()).pipe(peer);
      peer.on('error', () => client.destroy()).pipe(client);
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    this.forwarder = server;
    return `http://localhost:${server.address().port}/`;
  }

  async stop() {
    this.forwarder?.close();
    this.daemon.kill('SIGTERM');
    return this.ended;
  }
}

export class Session {
  #id = 0;

  static async open(gateway, server, { name = 'alice', program = { name: 'probe', version: '1' } } = {}) {
    const session = Object.assign(new Session(), { url: `http://127.0.0.1:${gateway.port}/${server}/mcp`, token: callerToken(name) });
    const response = await session.post('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: program });
    if (response.status !== 200) throw new Error(`initialize: ${response.status} ${await response.text()}`);
    session.session = response.headers.get('mcp-session-id');
    await response.text();
    await (await session.post('notifications/initialized')).text();
    return session;
  }

  post(method, params) {
    return fetch(this.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${this.token}`,
        ...(this.session && { 'Mcp-Session-Id': this.session, 'MCP-Protocol-Version': '2025-11-25' })
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...(!method.startsWith('notifications/') && { id: ++this.#id }), method, params })
    });
  }

  async ask(method, params) {
    const response = await this.post(method, params);
    return { status: response.status, text: await response.text() };
  }

  call(name, args = {}) {
    return this.ask('tools/call', { name, arguments: args });
  }
}

// Calls until stop(), each as soon as the one before is answered.
export function load(session, name, args) {
  let goes = true;
  const end = (async () => {
    while (goes) await session.call(name, typeof args === 'function' ? args() : args).catch(() => { goes = false; });
  })();
  return { stop: () => { goes = false; return end; } };
}
