// A TCP relay in front of the gateway, whose connections the test cuts. It shows what has passed, so that a cut comes
// when something is under way and not after some time.

import { connect, createServer } from 'node:net';
import { LIMIT, until } from '../conformance/interop/report.mjs';

const KEPT = 1 << 16; // of what passed in a direction

export class Relay {
  #pairs = new Set();
  #passed = { up: '', down: '' };
  #server = createServer((client) => this.#join(client));

  constructor(target) {
    this.target = target; // {host, port}
  }

  async listen() {
    await new Promise((resolve, reject) => this.#server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return this.#server.address().port;
  }

  #join(client) {
    const gateway = connect(this.target);
    const pair = [client, gateway];
    this.#pairs.add(pair);
    for (const [from, to, way] of [[client, gateway, 'up'], [gateway, client, 'down']]) {
      from.on('data', (chunk) => { this.#passed[way] = (this.#passed[way] + chunk.toString('latin1')).slice(-KEPT); });
      from.on('error', () => to.destroy()).on('close', () => { to.destroy(); this.#pairs.delete(pair); });
      from.pipe(to);
    }
  }

  // Nothing has passed so far.
  forget() {
    this.#passed = { up: '', down: '' };
  }

  passed(way, text) {
    return until(() => this.#passed[way].includes(text), `nothing passed ${way} with ${text}`, LIMIT);
  }

  // Both sides see their connection reset. Returns how many there were.
  cut() {
    const pairs = [...this.#pairs];
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    return pairs.length;
  }
}
