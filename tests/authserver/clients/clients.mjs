#!/usr/bin/env node
// MCP clients as people use them, each with its own way to sign in, through the gateway to a tool call: the first
// sign-in from nothing but the URL, more scopes when a tool asks for them, a refresh when the token is no longer good.
//
//   node clients.mjs --gateway URL --as ISSUER
//
// The gateway has the tools plain (base scopes) and write (more), as check.mjs starts it. The authorization server
// consents by itself; what a browser would do is one request.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { parseArgs } from 'node:util';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v2 from '@modelcontextprotocol/client';
import { UnauthorizedError as OldUnauthorizedError } from 'sdk-1.11/client/auth.js';
import { Client as OldClient } from 'sdk-1.11/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from 'sdk-1.11/client/streamableHttp.js';

const { values: options } = parseArgs({ options: { gateway: { type: 'string' }, as: { type: 'string' } } });
if (!options.gateway || !options.as) { console.error('usage: node clients.mjs --gateway URL --as ISSUER'); process.exit(2); }
const gateway = new URL(options.gateway);
const LIMIT = 30_000;
const REDIRECT = 'http://127.0.0.1:7654/callback';
const info = { name: 'oauth-client', version: '1.0.0' };

const count = { ok: 0, FAIL: 0 };
function must(condition, complaint) { if (!condition) throw new Error(complaint); }
async function check(name, run) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('not in time')), LIMIT); });
  const outcome = await Promise.race([run(), late]).then(() => ['ok'], (error) => ['FAIL', error.stack ?? String(error)]);
  clearTimeout(timer);
  count[outcome[0]]++;
  console.log(`${outcome[0].padEnd(4)} ${name}${outcome[1] ? `: ${outcome[1].slice(0, 600)}` : ''}`);
}
const control = (what, body) => fetch(`${new URL(options.as).origin}/_ctl/${what}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

// What an application keeps for the SDK. The "browser" is followed at once, up to the redirect with the code.
class Keeper {
  constructor({ refreshes = true } = {}) { this.refreshes = refreshes; this.signIns = 0; this.scopes = []; }
  get redirectUrl() { return REDIRECT; }
  get clientMetadata() { return { client_name: 'oauth-client', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' }; }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.saved; }
  saveTokens(tokens) {
    this.saved = this.refreshes ? tokens : { ...tokens, refresh_token: undefined };
    this.given = (this.given ?? 0) + 1;
  }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(url) {
    this.signIns++;
    this.scopes.push(url.searchParams.get('scope'));
    this.answer = await fetch(url, { redirect: 'manual' });
    this.back = new URL(this.answer.headers.get('location') ?? `${REDIRECT}?error=none`).searchParams;
  }
}

const text = (result) => result.content.map((part) => part.text ?? '').join('');

// The three kinds of client differ in names only.
const v1 = {
  transport: (keeper) => new StreamableHTTPClientTransport(gateway, { authProvider: keeper }),
  client: () => new Client(info), refusal: UnauthorizedError,
  finish: (transport, back) => transport.finishAuth(back.get('code')),
};
const old = {
  transport: (keeper) => new OldTransport(gateway, { authProvider: keeper }),
  client: () => new OldClient(info), refusal: OldUnauthorizedError,
  finish: (transport, back) => transport.finishAuth(back.get('code')),
};
const two = {
  transport: (keeper) => new v2.StreamableHTTPClientTransport(gateway, { authProvider: keeper }),
  client: () => new v2.Client(info, { versionNegotiation: { mode: 'legacy' } }), refusal: v2.UnauthorizedError,
  finish: (transport, back) => transport.finishAuth(back),
};

// Does what the SDKs' examples do: try, sign in when told so, try again.
async function withSignIn(kind, keeper, transport, attempt) {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof kind.refusal)) throw error;
    must(keeper.back?.get('code'), `no code in the redirect: ${keeper.back}`);
    await kind.finish(transport, keeper.back);
    return undefined;
  }
}

async function connect(kind, keeper) {
  for (let tries = 0; tries < 2; tries++) {
    const client = kind.client();
    const transport = kind.transport(keeper);
    const done = await withSignIn(kind, keeper, transport, async () => { await client.connect(transport); return true; });
    if (done) return { client, transport };
  }
  throw new Error('still not signed in');
}

async function call({ client, transport }, kind, keeper, name) {
  for (let tries = 0; tries < 2; tries++) {
    const result = await withSignIn(kind, keeper, transport, () => client.callTool({ name, arguments: {} }));
    if (result) return text(result);
  }
  throw new Error(`${name} is still refused`);
}

async function drive(name, kind, { stepsUp = true } = {}) {
  const keeper = new Keeper({ refreshes: false });
  let peer;
  await check(`${name}: signs in from nothing but the URL, and calls a tool`, async () => {
    peer = await connect(kind, keeper);
    must(await call(peer, kind, keeper, 'plain') === 'plain', 'another answer');
    must(keeper.signIns === 1, `${keeper.signIns} sign-ins`);
  });
  if (stepsUp) {
    await check(`${name}: asks for more scopes when a tool needs them, and keeps those it has`, async () => {
      must(await call(peer, kind, keeper, 'write') === 'written', 'another answer');
      must(keeper.signIns === 2, `${keeper.signIns} sign-ins`);
      for (const scope of ['mcp:connect', 'mcp:read', 'mcp:write']) must(keeper.scopes[1]?.split(' ').includes(scope), `asked for "${keeper.scopes[1]}"`);
      must(await call(peer, kind, keeper, 'plain') === 'plain', 'another answer');
      must(keeper.signIns === 2, 'one more sign-in');
    });
  }
  await peer?.client.close();
  await check(`${name}: refreshes a token that is no longer good, in the same session`, async () => {
    const fresh = new Keeper();
    const other = await connect(kind, fresh);
    const session = other.transport.sessionId;
    fresh.saved = { ...fresh.saved, access_token: 'eyJ0.no.longer' };
    must(await call(other, kind, fresh, 'plain') === 'plain', 'another answer');
    must(fresh.signIns === 1 && fresh.given === 2, `${fresh.signIns} sign-ins, ${fresh.given} tokens`);
    must(other.transport.sessionId === session, 'another session');
    await other.client.close();
  });
}

// A program between a client that knows stdio only and the gateway. It prints the URL that a browser should open.
async function remote() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'mcp-remote-'));
  const program = path.join(import.meta.dirname, 'node_modules/mcp-remote/dist/proxy.js');
  const child = spawn(process.execPath, [program, gateway.href, '--allow-http'], {
    stdio: 'pipe', env: { ...process.env, MCP_REMOTE_CONFIG_DIR: home, HOME: home, BROWSER: 'true', DISPLAY: '' },
  });
  const errors = [];
  const waiting = new Map();
  let visited = false;
  readline.createInterface({ input: child.stderr }).on('line', async (line) => {
    errors.push(line);
    const url = /(https?:\/\/\S+response_type=code\S*)/.exec(line)?.[1];
    if (!url || visited) return;
    visited = true;
    const answer = await fetch(url, { redirect: 'manual' });
    await fetch(answer.headers.get('location')).catch((e) => errors.push(`callback: ${e.message}`));
  });
  readline.createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  const ask = (id, method, params) => new Promise((resolve, reject) => {
    waiting.set(id, resolve);
    child.on('exit', (status) => reject(new Error(`mcp-remote ended with ${status}: ${errors.slice(-6).join(' | ')}`)));
    setTimeout(() => reject(new Error(`no answer to ${method}: ${errors.slice(-6).join(' | ')}`)), LIMIT - 1000).unref();
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  });
  try {
    await check('mcp-remote: signs in through its own callback, and calls a tool', async () => {
      const began = await ask(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info });
      must(began.result, JSON.stringify(began));
      child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
      const result = await ask(2, 'tools/call', { name: 'plain', arguments: {} });
      must(result.result && text(result.result) === 'plain', JSON.stringify(result));
      must(visited, 'nobody was asked to sign in');
    });
  } finally {
    child.kill('SIGTERM');
    fs.rmSync(home, { recursive: true, force: true });
  }
}

await control('reset', {});
await drive('TypeScript SDK 1.32', v1);
await drive('TypeScript client 2.4', two);
await remote();
// This one knows neither the metadata of resources nor resource indicators: it finds the issuer through the facade.
await control('config', { default_resource: options.gateway, default_scope: 'mcp:connect' });
await drive('TypeScript SDK 1.11, through the facade', old, { stepsUp: false });
await control('reset', {});
console.log(`${count.ok} passed, ${count.FAIL} failed`);
process.exit(count.FAIL ? 1 : 0);
