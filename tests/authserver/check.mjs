#!/usr/bin/env node
// The matrix against a gateway: starts two authorization servers and the gateway with everything on, runs the
// matrix, ends what it started; then the cases that TLS may change once more, with TLS between all of them.
// Arguments behind the program go to the matrix.
import { execFileSync, spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { freePort } from './lib/ports.mjs';
import { verifyingServer } from './verifying-server.mjs';

const [program, ...more] = process.argv.slice(2);
if (!program) { console.error('usage: node check.mjs MCPGATED [argument of matrix.mjs ...]'); process.exit(2); }

const here = import.meta.dirname;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'mcpgated-auth-'));
let started = [];
const BASE = 'mcp:connect';
const ORIGIN = 'https://app.example.com';
const WITH_TLS = 'AUTH-(CH-01|PRM-0[134]|FAC|IN-0[167]|JWT-02|AUD-01|KEY-0[4578]|OPQ-0[24]|E2E|POP-02)';
const AUDIENCE = 'https://told.example/mcp';
const LEEWAY = 6; // seconds; small ones keep the run short

// Starts a program and waits until it says so; what else it says goes to a file.
async function start(name, command, args, ready) {
  const log = fs.createWriteStream(path.join(folder, `${name}.log`));
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  await new Promise((resolve, reject) => {
    let seen = '';
    const listen = (data) => {
      log.write(data);
      seen = (seen + data).slice(-4096);
      if (ready.test(seen)) resolve();
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('exit', (status) => reject(new Error(`${name} ended with ${status}: ${seen.trim().replaceAll('\n', ' | ')}`)));
  });
  return child;
}

async function stop(child) {
  if (child.exitCode === null && child.signalCode === null) {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
    await Promise.race([once(child, 'exit'), new Promise((r) => { setTimeout(r, 20000); })]);
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  }
  return child.exitCode;
}

async function authserver(name, resources, tls) {
  const port = await freePort();
  const args = ['--port', String(port), ...resources.flatMap((r) => ['--resource', r]), ...(tls ? ['--tls', tls.certificate, tls.key, '--client-key', tls.clientKey] : [])];
  await start(name, process.execPath, [path.join(here, 'authserver.mjs'), ...args], /authserver ready/);
  return `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
}

function makeKey(file, algorithm, ...more) {
  execFileSync('openssl', ['genpkey', '-algorithm', algorithm, ...more, '-out', file], { stdio: 'ignore' });
  fs.chmodSync(file, 0o600);
}

function makeCertificate() {
  const tls = { certificate: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem'), clientKey: path.join(folder, 'client.pem') };
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', tls.key, '-out', tls.certificate], { stdio: 'ignore' });
  makeKey(tls.clientKey, 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256');
  fs.chmodSync(tls.key, 0o600);
  return tls;
}

function configuration(gateway, issuers, token, tls, told) {
  const server = { command: process.execPath, args: [path.join(here, 'leaky-server.mjs')], scopes: [BASE] };
  const common = { leeway: `${LEEWAY}s`, jwks_interval: '1s', allow_private: true, ...(tls ? { ca: tls.certificate } : {}) };
  // Both ways to show who we are.
  const introspection = tls
    ? { client_id: 'gateway-rs-key', auth_method: 'private_key_jwt', client_key: { file: tls.clientKey }, client_key_id: 'gateway' }
    : { client_id: 'gateway-rs', client_secret: 'gateway-rs-secret' };
  return {
    listen: [{ address: new URL(gateway).host, ...(tls ? { tls: { certificate: tls.certificate, key: tls.key } } : {}) }],
    public_url: gateway,
    origins: [ORIGIN],
    limits: { header_bytes: '64KiB' },
    log: { level: 'debug' },
    auth: {
      mode: 'oauth',
      issuers: [
        { issuer: issuers[0], ...common, introspection },
        { issuer: issuers[1], ...common },
      ],
      tokens: [{ name: 'static', sha256: crypto.createHash('sha256').update(token).digest('hex'), scopes: [BASE] }],
      scope_hierarchy: { 'mcp:all': ['mcp:read', 'mcp:write'] },
      dpop: 'on',
      metadata_facade: 'on',
      ...(told ? { assertion_key: { file: told.key } } : {}),
    },
    servers: {
      main: { ...server, path: '/mcp', tools: { scopes: { write: ['mcp:read', 'mcp:write'], admin: ['mcp:admin'] } } },
      ...(told ? { told: { url: told.url, auth: { grant: 'assertion', audience: AUDIENCE } } } : {}),
      other: server,
    },
  };
}

async function matrix(gateway, issuers, token, extra) {
  const args = [
    path.join(here, 'matrix.mjs'), '--gateway', `${gateway}/mcp`, '--resource', `${gateway}/mcp`, '--scope', BASE,
    '--as', issuers[0], '--as2', issuers[1], '--leeway', String(LEEWAY), '--jwks-interval', '1', '--origin', ORIGIN,
    '--tool', 'plain', '--tool-scope', 'write=mcp:read,mcp:write', '--tool-scope', 'admin=mcp:admin',
    '--implies', 'mcp:all=mcp:read,mcp:write', '--leak-tool', 'leak', '--facade', 'yes', '--introspection', '--opaque-ttl', '30',
    '--static', token, '--other', `${gateway}/other/mcp=${gateway}/other/mcp`, '--dpop', ...extra, ...more,
  ];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  started.push(child);
  const [status] = await once(child, 'exit');
  return status;
}

// Real clients, where they are installed.
async function clients(gateway, issuer) {
  const program = path.join(here, 'clients', 'clients.mjs');
  if (!fs.existsSync(path.join(here, 'clients', 'node_modules'))) {
    console.log('skip  real clients: they are not installed\n0 passed, 0 failed, 1 skipped');
    return 0;
  }
  const child = spawn(process.execPath, [program, '--gateway', `${gateway}/mcp`, '--as', issuer], { stdio: 'inherit' });
  started.push(child);
  const [status] = await once(child, 'exit');
  return status;
}

// Who that server is told is calling.
async function whoIsTold(gateway, issuer, name) {
  const query = new URLSearchParams({ raw: 1, aud: `${gateway}/told/mcp`, scope: BASE, sub: name });
  const token = await (await fetch(`${issuer}/_ctl/mint?${query}`)).text();
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const answer = await fetch(`${gateway}/told/mcp`, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' } });
  const { result } = await answer.json();
  return result ? { ...JSON.parse(result.serverInfo.name), alg: result.serverInfo.version } : null;
}

// Two callers, each told as who it is, with an elliptic key and, after a reload, an RSA key.
async function checkAssertions(gateway, issuer, told, daemon) {
  const faults = [];
  for (const alg of ['ES256', 'RS256']) {
    if (alg === 'RS256') { makeKey(told.key, 'RSA'); daemon.kill('SIGHUP'); }
    const until = Date.now() + 15000;
    while (alg === 'RS256' && Date.now() < until && (await whoIsTold(gateway, issuer, 'ann'))?.alg !== alg);
    for (const name of ['ann', 'ben']) {
      const claims = await whoIsTold(gateway, issuer, name);
      if (!claims || claims.alg !== alg || claims.sub !== name || claims.sub_id.iss !== issuer) faults.push(`${alg}: ${name} is told as ${JSON.stringify(claims)}`);
    }
  }
  faults.push(...told.refused);
  for (const fault of faults) console.log(`FAIL ${fault}`);
  console.log(faults.length ? '0 passed, 1 failed' : 'ok   BACK-URL-11 BACK-URL-12 jose verifies who calls\n1 passed, 0 failed, 0 skipped');
  return faults.length ? 1 : 0;
}

// The gateway is to end cleanly, with no error and no token in its log.
async function checkEnd(daemon, log, token) {
  const end = await stop(daemon);
  const text = fs.readFileSync(log, 'utf8');
  const faults = text.split('\n').filter((l) => /AddressSanitizer|LeakSanitizer|runtime error|^\S+ error /.test(l) || l.includes(token));
  if (end === 0 && faults.length === 0) return 0;
  console.log(`FAIL the gateway ended with ${end}\n${faults.join('\n')}\n0 passed, 1 failed`);
  return 1;
}

async function run(name, tls, extra) {
  const gateway = `${tls ? 'https' : 'http'}://127.0.0.1:${await freePort()}`;
  const token = crypto.randomBytes(32).toString('base64url');
  const resources = [`${gateway}/mcp`, `${gateway}/other/mcp`];
  const issuers = [await authserver(`${name}-issuer`, resources, tls), await authserver(`${name}-issuer2`, resources, tls)];
  const file = path.join(folder, `${name}.yaml`);
  const told = tls ? null : { refused: [], key: path.join(folder, 'assertion.pem') };
  if (told) {
    makeKey(told.key, 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256');
    told.server = await verifyingServer(gateway, AUDIENCE, told.refused);
    told.url = `http://127.0.0.1:${told.server.address().port}/mcp`;
  }
  fs.writeFileSync(file, JSON.stringify(configuration(gateway, issuers, token, tls, told)), { mode: 0o600 });
  const daemon = await start(name, program, ['-c', file], /ready: other .*at/);
  let status = await matrix(gateway, issuers, token, extra);
  if (!tls) status = Math.max(status, await clients(gateway, issuers[0]));
  if (told) {
    status = Math.max(status, await checkAssertions(gateway, issuers[0], told, daemon));
    told.server.close();
    told.server.closeAllConnections();
  }
  return Math.max(status, await checkEnd(daemon, path.join(folder, `${name}.log`), token));
}

async function stopAll() {
  for (const child of started.reverse()) await stop(child);
  started = [];
}

let status = 1;
try {
  status = await run('plain', null, []);
  await stopAll();
  const tls = makeCertificate();
  status = Math.max(status, await run('tls', tls, ['--ca', tls.certificate, '--only', WITH_TLS]));
} catch (e) {
  console.log(`FAIL ${e.message}\n0 passed, 1 failed`);
}
for (const child of started.reverse()) await stop(child);
if (status === 0 || !process.env.KEEP) fs.rmSync(folder, { recursive: true });
else console.log(`logs are in ${folder}`);
process.exit(status);
