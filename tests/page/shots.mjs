#!/usr/bin/env node
// Pictures of the page with everything on it, for people to look at: phone and desktop, light and dark.
//
//   node shots.mjs --bin DIR --to DIR

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { freePort } from '../authserver/lib/ports.mjs';
import { Gateway, Session, TOKEN, load } from './gateway.mjs';
import { texts } from './texts.mjs';

const { values: options } = parseArgs({ options: { bin: { type: 'string' }, to: { type: 'string' }, seconds: { type: 'string', default: '70' } } });
if (!options.bin || !options.to) {
  console.error('usage: shots.mjs --bin DIR --to DIR [--seconds N]');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'mcpgated-page-'));
const demo = resolve(options.bin, 'mcpgated-demo');
const never = { command: process.execPath, args: ['-e', 'process.stdin.resume()'] };
const gateway = new Gateway(options.bin, folder, {
  port: await freePort(), page: await freePort(), names: ['alice', 'ci', 'build-bot', 'dora.meier@example.com'],
  servers: {
    files: { command: demo, pool: { max: 24 } },
    github: { command: demo, isolation: 'shared', pool: { max: 4 }, tools: { deny: ['crash'] } },
    calendar: { command: demo, pool: { max: 8 } },
    tickets: { command: process.execPath, args: [join(import.meta.dirname, 'hostile.mjs')], pin: 'enforce' },
    warehouse: { command: '/usr/local/bin/warehouse-mcp', start: { backoff: '1s..60s', try: true } },
    search: { ...never, start: { timeout: '300s', try: true } }
  }
});
await gateway.start();
const names = ['alice', 'ci', 'build-bot', 'dora.meier@example.com'];
const programs = [{ name: 'claude-code', version: '2.1.4' }, { name: 'cursor', version: '1.9' }, { name: 'ci-runner', version: '0.4' }];
const loads = [];
for (let i = 0; i < 9; i++) {
  const session = await Session.open(gateway, ['files', 'github', 'calendar'][i % 3], { name: names[i % 4], program: programs[i % 3] });
  loads.push(load(session, 'sleep', () => ({ ms: Math.floor(Math.exp(Math.random() * 6.2)) })));
}
const evil = await Session.open(gateway, 'tickets', { program: { name: texts.program, version: '1' } });
await evil.ask('tools/list');
await evil.call('echo', { text: 'x' });
await evil.ask('tools/list');
const files = await Session.open(gateway, 'files', { name: 'ci' });
for (const text of ['indexing /srv/files: 18,240 entries', 'watch: 3 changes', 'warn: /srv/files/archive cannot be read: Permission denied'])
  await files.call('stderr', { text });
const busy = await Session.open(gateway, 'github', { name: 'ci', program: programs[2] });
for (let i = 0; i < 90; i++) await busy.call(i % 10 ? 'echo' : 'crash', { text: 'x' });

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
mkdirSync(options.to, { recursive: true });
const shown = [];
for (const colorScheme of ['light', 'dark'])
  for (const [device, viewport] of [['desktop', { width: 1280, height: 704 }], ['phone', { width: 360, height: 740 }]]) {
    const page = await (await browser.newContext({ viewport, colorScheme, deviceScaleFactor: device === 'phone' ? 2 : 1 })).newPage();
    page.on('console', (message) => console.log(message.type(), message.text()));
    page.on('pageerror', (error) => console.log('error', error.message));
    await page.goto(gateway.page);
    await page.waitForSelector('[data-live]');
    shown.push([page, device, colorScheme]);
  }
await sleep(Number(options.seconds) * 1000);
for (const [page, device, colorScheme] of shown) {
  await page.screenshot({ path: join(options.to, `${device}-${colorScheme}.png`) });
  await page.getByRole('button', { name: 'files' }).click();
  await sleep(1500);
  await page.screenshot({ path: join(options.to, `${device}-${colorScheme}-full.png`), fullPage: true });
}
const [page] = shown[0];
await page.getByRole('button', { name: 'Enter token' }).click();
await page.getByLabel('Token').fill(TOKEN);
await page.screenshot({ path: join(options.to, 'dialog.png') });
await page.getByRole('button', { name: 'Unlock' }).click();
await page.getByRole('button', { name: 'tickets' }).click();
await sleep(1500);
await page.screenshot({ path: join(options.to, 'orders.png'), fullPage: true });
await browser.close();
await Promise.all(loads.map((l) => l.stop()));
console.log('ended with', await gateway.stop());
rmSync(folder, { recursive: true, force: true });
