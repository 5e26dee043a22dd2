// SPDX-License-Identifier: Apache-2.0
// An MCP server over HTTP that takes the gateway's word for who calls, after it has verified it as such servers do: by npm
// `jose`, with the keys that the gateway publishes.
import http from 'node:http';
import { once } from 'node:events';
import { createRemoteJWKSet, jwtVerify } from 'jose';

// It calls itself by the caller's claims; what it refuses is added to `refused`.
export async function verifyingServer(gateway, audience, refused) {
  const keys = createRemoteJWKSet(new URL(`${gateway}/.well-known/jwks.json`), { cooldownDuration: 0 });
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    let known;
    try {
      known = await jwtVerify(token, keys, { issuer: gateway, audience, requiredClaims: ['sub', 'exp', 'iat', 'jti'], maxTokenAge: '5m' });
    } catch (e) {
      refused.push(e);
      response.writeHead(401).end();
      return;
    }
    const message = request.method === 'POST' ? JSON.parse(body) : {};
    if (message.method !== 'initialize') { response.writeHead(request.method === 'POST' ? 202 : 405).end(); return; }
    const result = { protocolVersion: message.params.protocolVersion, capabilities: {}, serverInfo: { name: JSON.stringify(known.payload), version: known.protectedHeader.alg } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
