// Ports of loopback for programs that are started a moment later.
import fs from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';

// One below those that the kernel gives out by itself: no connection or listener of another test gets it meanwhile.
export async function freePort() {
  const [first] = fs.readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/).map(Number);
  for (let tries = 0; tries < 100; tries++) {
    const port = first - 1 - Math.floor(Math.random() * 8192);
    const server = net.createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening'); // rejects with the server's error
    } catch (error) {
      if (error.code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error('no port is free');
}
