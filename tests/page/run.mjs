#!/usr/bin/env node
// The status page in Chromium: what it shows, what it refuses, and that it goes on.
//
//   node run.mjs --bin DIR [--browser PATH]
//
// Whatever a page says on its console, throws, or is refused by its Content-Security-Policy is a failed check of its own at the end.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { check, finish, must, until } from '../conformance/interop/report.mjs';
import { freePort } from '../authserver/lib/ports.mjs';
import { Gateway, Session, TOKEN, load } from './gateway.mjs';
import { shown, texts } from './texts.mjs';

const { values: options } = parseArgs({ options: { bin: { type: 'string' }, browser: { type: 'string', default: '/usr/bin/chromium' } } });
if (!options.bin) {
  console.error('usage: run.mjs --bin DIR [--browser PATH]');
  process.exit(2);
}
if (!existsSync(options.browser)) {
  console.log(`skip  page  everything: there is no ${options.browser}\n0 passed, 0 failed, 1 skipped`);
  process.exit(0);
}
const { chromium } = await import('playwright-core');

const folder = mkdtempSync(join(tmpdir(), 'mcpgated-page-'));
const demo = resolve(options.bin, 'mcpgated-demo');
const gateway = new Gateway(options.bin, folder, {
  port: await freePort(), page: await freePort(),
  servers: {
    demo: { command: demo, tools: { deny: ['crash'] } },
    hostile: { command: process.execPath, args: [join(import.meta.dirname, 'hostile.mjs')], pin: 'enforce' },
    broken: { command: '/nonexistent/<b>server</b>', start: { backoff: '1h..1h', try: true } },
    slow: { command: process.execPath, args: ['-e', 'process.stdin.resume()'], start: { timeout: '5m', try: true } }
  }
});

// ---- the browser ----

const complaints = [];
let browser;

async function open(url, { width = 1280, height = 900, colorScheme = 'light', minds = true, live = true, expects = /^$/ } = {}) {
  const page = await (await browser.newContext({ viewport: { width, height }, colorScheme })).newPage();
  if (minds) {
    page.on('console', (message) => ['error', 'warning'].includes(message.type()) && !isBroken(message) && !expects.test(message.text()) && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.addInitScript(() => addEventListener('securitypolicyviolation', (event) => console.error('violates', event.violatedDirective)));
  }
  const response = await page.goto(url);
  if (live) await isLive(page);
  return Object.assign(page, { first: response });
}

// A stream that ends because the gateway does is what one check is about.
const isBroken = (message) => /net::ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)/.test(message.text());
const isLive = (page) => page.waitForSelector('body[data-live]', { timeout: 10_000 });
const serverRow = (page, name) => page.locator('#servers tbody tr:not(.more)', { has: page.getByRole('button', { name, exact: true }) });
const cell = async (page, name, title) => {
  const titles = await page.locator('#servers thead th').allTextContents();
  return (await serverRow(page, name).locator('> *').nth(titles.indexOf(title)).textContent()).trim();
};
const rows = (page, part) => page.locator(`#${part} tbody tr`);
const number = (text) => Number(text.replace(/[^0-9.]/g, ''));
const total = async (page, name) => (await page.locator('#totals > div', { has: page.getByText(name, { exact: true }) }).locator('.value').textContent());

// Answers of the page's address to what no browser of ours would send.
const raw = (port, path, { method = 'GET', headers = {} } = {}) => new Promise((done, fail) => {
  const sent = request({ host: '127.0.0.1', port, path, method, headers, setHost: headers.Host === undefined }, (response) => {
    response.resume();
    response.on('end', () => done(response));
  });
  sent.on('error', fail);
  sent.end();
});

// Those of a group run two at a time: a browser has six connections to an address.
const groups = [{
  async 'servers, their states and causes are shown'() {
    const page = await open(gateway.page);
    await until(async () => await cell(page, 'broken', 'State') === 'failing', 'broken is not failing');
    must((await serverRow(page, 'broken').textContent()).includes('No such file or directory'), 'the cause is missing');
    must((await page.locator('#attention').textContent()).includes('broken is failing: it could not be started: No such file'), 'it does not need attention');
    const age = async () => number((await cell(page, 'slow', 'State')).replace(/^starting /, ''));
    const then = await age();
    await until(async () => await age() > then, 'the age of starting does not grow');
    must(/^starting \d+ (ms|s)$/.test(await cell(page, 'slow', 'State')), `slow is ${await cell(page, 'slow', 'State')}`);
    await page.context().close();
  },

  async 'refusals are counted by their reason'() {
    const page = await open(gateway.page);
    const session = await Session.open(gateway, 'demo');
    for (let i = 0; i < 3; i++) await session.call('crash');
    const row = rows(page, 'refusals').filter({ hasText: 'not_permitted' });
    await until(async () => await row.count() === 1 && (await row.locator('td').last().textContent()) === '3', 'no row of three refusals');
    await until(async () => await cell(page, 'demo', 'Refused') === '3', 'the server has none');
    await page.context().close();
  },

  async 'it names the version and the commit'() {
    const page = await open(gateway.page);
    const said = execFileSync(resolve(options.bin, 'mcpgated'), ['--version'], { encoding: 'utf8' }).trim();
    await until(async () => 'mcpgated ' + await page.locator('#version').textContent() === said, `it does not say ${said}`);
    await page.context().close();
  },

  async 'each refusal is counted once, and sign-ins apart'() {
    const page = await open(gateway.page);
    const send = (token) => fetch(`http://127.0.0.1:${gateway.port}/slow/mcp`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream', ...(token && { Authorization: `Bearer ${token}` }) } }).then((response) => response.text());
    for (let i = 0; i < 2; i++) await send();
    for (let i = 0; i < 3; i++) await send('wrong');
    const row = rows(page, 'refusals').filter({ hasText: 'slow' });
    await until(async () => await row.count() === 1 && (await row.textContent()).startsWith('invalid_token'), 'not one row for the wrong tokens');
    await until(async () => await cell(page, 'slow', 'Refused') === '3', `${await cell(page, 'slow', 'Refused')} are refused, not 3`);
    must(await rows(page, 'refusals').filter({ hasText: /unauthorized|unknown/ }).count() === 0, 'they are counted again');
    const counts = await rows(page, 'refusals').locator('td:last-child').allTextContents();
    const [all, signIns] = (await page.locator('#refusals .count').textContent()).split('; ');
    must(number(all) === counts.map(number).reduce((a, b) => a + b), `${all} are not the sum of ${counts}`);
    must(/^[2-9] asked to sign in$/.test(signIns), `sign-ins: ${signIns}`);
    await page.context().close();
  },

  async 'an ended session disappears'() {
    const page = await open(gateway.page);
    const [stays, ends] = [await Session.open(gateway, 'demo'), await Session.open(gateway, 'demo')];
    const row = (session) => rows(page, 'sessions').filter({ hasText: session.session.slice(0, 8) });
    await until(async () => await row(stays).count() === 1 && await row(ends).count() === 1, 'they are not shown');
    await fetch(ends.url, { method: 'DELETE', headers: { Authorization: `Bearer ${ends.token}`, 'Mcp-Session-Id': ends.session } });
    await until(async () => await row(ends).count() === 0, 'it is still shown');
    must(await row(stays).count() === 1, 'the other one has gone as well');
    await page.getByLabel('Show only').fill(stays.session.slice(0, 8));
    must(await rows(page, 'sessions').count() === 1, 'the filter leaves others');
    await page.context().close();
  },

  async 'hostile names and lines are text'() {
    const page = await open(gateway.page);
    const session = await Session.open(gateway, 'hostile', { program: { name: texts.program, version: '1' } });
    await session.ask('tools/list');
    await session.call('echo', { text: 'x' });
    await session.ask('tools/list');
    await until(async () => await rows(page, 'sessions').filter({ hasText: shown.program }).count() > 0, 'the program is not there as text');
    await page.getByRole('button', { name: 'hostile', exact: true }).click();
    await until(async () => (await page.locator('.lines .said').allTextContents()).length >= 10, 'lines are missing');
    const lines = await page.locator('.lines .said').allTextContents();
    must(JSON.stringify(lines.slice(0, 5)) === JSON.stringify(shown.stderr), `the lines are ${JSON.stringify(lines.slice(0, 5))}`);
    await until(async () => await page.locator('#pin-list strong').filter({ hasText: texts.tool }).count() === 1, 'the tool is not there as text');
    must(!/[\u200B-\u200F\u202A-\u202E\u2066-\u2069\u0000-\u0009\u000B-\u001F\u007F-\u009F]/.test(await page.locator('body').innerText().then((text) => text.replace(/\t/g, ' '))),
      'something unseen is on the page');
    must(await page.locator('main :is(img, script, b)').count() === 0, 'there is markup');
    must(await page.evaluate(() => globalThis.owned === undefined), 'it ran');
    await page.context().close();
  },

  async 'what the policy forbids is refused, and would be seen'() {
    const page = await open(gateway.page, { minds: false });
    const violations = await page.evaluate(async () => {
      const seen = [];
      addEventListener('securitypolicyviolation', (event) => seen.push(event.violatedDirective));
      let thrown = false;
      try { document.body.insertAdjacentHTML('beforeend', '<i>x</i>'); } catch { thrown = true; }
      const script = document.createElement('style');
      script.append('body { display: none }');
      document.head.append(script);
      await fetch('http://127.0.0.1:1/').catch(() => {});
      for (let i = 0; i < 100 && seen.length < 3; i++) await new Promise((done) => setTimeout(done, 20));
      return { seen, thrown };
    });
    must(violations.thrown, 'markup can be made of text');
    for (const directive of ['require-trusted-types-for', 'style-src-elem', 'connect-src'])
      must(violations.seen.includes(directive), `no violation of ${directive}: ${violations.seen}`);
    const policy = page.first.headers()['content-security-policy'];
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
      must(policy.includes(part), `the policy lacks ${part}`);
    must(!/unsafe|\*|data:/.test(policy), 'the policy has holes');
    must(page.first.headers()['x-content-type-options'] === 'nosniff', 'types are guessed');
    await page.context().close();
  },

  async 'without the token it only shows'() {
    const page = await open(gateway.page, { expects: /status of 403/ });
    const session = await Session.open(gateway, 'demo');
    const row = rows(page, 'sessions').filter({ hasText: session.session.slice(0, 8) });
    await row.waitFor();
    must(await page.locator('#access').textContent() === 'Read-only', 'it does not say so');
    must(await page.locator('.order:visible').count() === 0, 'there are orders to give');
    for (const path of [`/end-session?id=${session.session.slice(0, 8)}`, '/restart?server=demo', '/drain', '/pins-approve?server=hostile&number=1&digest=0'])
      for (const headers of [{}, { Authorization: 'Bearer wrong' }])
        must(await page.evaluate(async ([path, headers]) => (await fetch(path, { method: 'POST', headers })).status, [path, headers]) === 403, `${path} was not refused`);
    must((await session.call('echo', { text: 'still here' })).text.includes('still here'), 'the session has ended');
    for (const path of ['/status', '/sessions', '/metrics', '/deny', '/mcp/demo', '/can'])
      must((await raw(gateway.pagePort, path)).statusCode === 404, `${path} is there`);
        await page.context().close();
  },

  async 'pages of strangers get nothing'() {
    const port = gateway.pagePort;
    const page = await open(`http://evil.example:${port}/`, { minds: false, live: false });
    must(page.first.status() === 403, `another name is answered with ${page.first.status()}`);
    const own = { Host: `127.0.0.1:${port}`, Authorization: `Bearer ${TOKEN}` };
    for (const headers of [{ Host: 'evil.example' }, { Host: `127.0.0.1.evil.example:${port}` }, { ...own, Origin: 'http://evil.example' }, { ...own, Origin: 'null' },
      { ...own, Origin: `http://127.0.0.1:${port + 1}` }, { ...own, Origin: `https://127.0.0.1:${port}` }])
      for (const [method, path] of [['GET', '/events'], ['GET', '/'], ['POST', '/drain']])
        must((await raw(port, path, { method, headers })).statusCode === 403, `${method} ${path} with ${JSON.stringify(headers)} was answered`);
    must((await raw(port, '/access', { headers: { ...own, Origin: `http://127.0.0.1:${port}` } })).statusCode === 200, 'its own origin is refused');
    // Another page of this machine: it can send, but what it sends says where it is from.
    const stranger = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx'));
    await new Promise((done) => stranger.listen(0, '127.0.0.1', done));
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`);
    await page.evaluate((to) => fetch(to, { method: 'POST', mode: 'no-cors' }).catch(() => {}), `http://127.0.0.1:${port}/drain`);
    must(await page.evaluate((to) => fetch(to).then(() => 'read', () => 'refused'), `http://127.0.0.1:${port}/events`) === 'refused', 'a stranger can read');
    await page.setContent(`<iframe src="http://127.0.0.1:${port}/"></iframe>`);
    must(await page.frames()[1].locator('#servers').count() === 0, 'it can be framed');
    stranger.close();
    await page.context().close();
  },

  async 'the keyboard reaches everything'() {
    const page = await open(gateway.page);
    await page.waitForSelector('#servers .open');
    await page.evaluate(() => {
      globalThis.reached = [];
      addEventListener('focusin', ({ target }) => {
        const style = getComputedStyle(target);
        globalThis.reached.push({ name: (target.getAttribute('aria-label') ?? target.textContent ?? '').trim() || target.id,
          isSeen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 });
      });
    });
    for (let i = 0; i < 25; i++) await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => globalThis.reached);
    must(focused.every(({ isSeen }) => isSeen), `a focus is not seen: ${JSON.stringify(focused.filter(({ isSeen }) => !isSeen))}`);
    const reached = focused.map(({ name }) => name.split('\n')[0].trim());
    for (const name of ['Skip to the servers', 'Enter token…', 'demo', 'hostile', 'broken', 'slow', 'session-filter', 'Processes'])
      must(reached.some((at) => at.startsWith(name)), `${name} is not reached, only ${reached}`);
    await page.getByRole('button', { name: 'demo', exact: true }).focus();
    await page.keyboard.press('Enter');
    must(await page.getByRole('log').isVisible(), 'Enter does not open a server');
    await page.getByRole('button', { name: 'Enter token' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    must(await page.locator('#enter').isHidden(), 'Escape does not leave the question');
    for (const [role, name] of [['banner'], ['main'], ['contentinfo'], ['region', 'Servers'], ['table']])
      must(await page.getByRole(role, name && { name }).count() > 0, `there is no ${role} ${name ?? ''}`);
    await page.context().close();
  },

  async 'by the admin socket it gives orders, and strangers get nothing'() {
    const url = await gateway.forward();
    const page = await open(url);
    await until(async () => await page.locator('#access').textContent() === 'Orders are on', 'the socket is not enough');
    const { port } = new URL(url);
    for (const headers of [{ Host: 'evil.example' }, { Host: `localhost:${port}`, Origin: 'http://evil.example' }])
      for (const [method, path] of [['GET', '/status'], ['GET', '/'], ['POST', '/drain']])
        must((await raw(port, path, { method, headers })).statusCode === 403, `${method} ${path} with ${JSON.stringify(headers)} was answered`);
    await page.context().close();
  }
}, {
  async 'with the token a session is ended, a definition approved'() {
    const page = await open(gateway.page, { expects: /status of 403/ });
    const session = await Session.open(gateway, 'demo');
    const row = rows(page, 'sessions').filter({ hasText: session.session.slice(0, 8) });
    await row.waitFor();
    await page.getByRole('button', { name: 'Enter token' }).click();
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Unlock' }).click();
    await until(async () => (await page.locator('#enter-why').textContent()).includes('not that of admin.page_token'), 'a wrong token is taken');
    await page.getByLabel('Token').fill(TOKEN);
    await page.getByRole('button', { name: 'Unlock' }).click();
    await until(async () => await page.locator('#access').textContent() === 'Orders are on', 'the token is not taken');
        await row.getByRole('button').click();
    await page.keyboard.press('Enter'); // the first button is to leave it
    must(await page.locator('#ask').isHidden() && (await session.call('echo', { text: 'x' })).status === 200, 'Enter alone ends it');
    await row.getByRole('button').click();
    await page.getByRole('button', { name: 'End session', exact: true }).click();
    await until(async () => await row.count() === 0, 'it is still shown');
    must((await session.call('echo', { text: 'x' })).status === 404, 'it goes on');
    must(/Session \S+ has been ended/.test(await page.locator('#said').textContent()), 'nothing is said');
    await page.getByRole('button', { name: /^Approve tool pay/ }).click();
    await until(async () => await page.locator('#pins').isHidden(), 'it still waits');
    await page.getByRole('button', { name: 'demo', exact: true }).click();
    await page.getByRole('button', { name: 'Restart…' }).click();
    await page.keyboard.press('Enter');
    must(await page.locator('#ask').isHidden() && !gateway.log.some((line) => /command=restart/.test(line)), 'Enter alone restarts it');
    await page.getByRole('button', { name: 'Restart…' }).click();
    await page.getByRole('button', { name: 'Restart', exact: true }).click();
    await until(async () => /being replaced/.test(await page.locator('#said').textContent()), 'it is not restarted');
    must(gateway.log.filter((line) => /admin_command.*(end-session|pins-approve)/.test(line)).length === 2, 'the log has no orders');
    await page.context().close();
  }
}, {
  async 'numbers change under load'() {
    const page = await open(gateway.page);
    const session = await Session.open(gateway, 'demo');
    const goes = load(session, 'sleep', { ms: 5 });
    await until(async () => number(await cell(page, 'demo', 'Calls/s')) > 5, 'no calls per second of the server');
    await until(async () => number(await total(page, 'Calls per second')) > 5, 'no calls per second');
    await until(async () => await page.locator('#totals .trace').first().getAttribute('points') !== '', 'no line');
    must(/^< \d+ m?s$/.test(await cell(page, 'demo', 'p95')), `p95 is ${await cell(page, 'demo', 'p95')}`);
    await page.getByRole('button', { name: 'demo', exact: true }).click();
    await until(async () => /, [1-9]\d* in the last minute/.test(await page.locator('.answers .bars').textContent()), 'no bar of the last minute');
    const sleeping = [session.call('sleep', { ms: 3000 }), goes.stop()];
    await until(async () => await total(page, 'In flight') === '1', 'nothing in flight');
    await Promise.all(sleeping);
    await until(async () => await total(page, 'In flight') === '0', 'still in flight');
    await until(async () => await total(page, 'Calls per second') === '0', 'still calls per second', 15_000);
    await page.context().close();
  },

  async 'it fits every width, and is readable in both schemes'() {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(gateway.page, { colorScheme });
      await page.getByRole('button', { name: 'hostile', exact: true }).click();
      await page.waitForSelector('.lines li');
      await page.evaluate(() => document.querySelectorAll('details.part').forEach((part) => { part.open = true; }));
      for (const width of [1280, 768, 400, 360]) {
        await page.setViewportSize({ width, height: 900 });
        const cut = width > 400 ? [] : await page.evaluate(() => [...document.querySelectorAll('main :is(.scroll, table)')]
          .filter((node) => node.checkVisibility() && (node.scrollWidth > node.clientWidth + 1 || node.getBoundingClientRect().right > innerWidth))
          .map((node) => `${node.tagName} of ${node.closest('section, details').id}: ${node.scrollWidth} of ${node.clientWidth}`));
        must(cut.length === 0, `${width}: cut: ${cut}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        must(wide <= 0, `${width}: ${wide} pixels too wide: ${await page.evaluate(() => [...document.querySelectorAll('main *')]
          .filter((n) => !n.closest('.scroll') && n.getBoundingClientRect().right > innerWidth).map((n) => `${n.tagName}.${n.className}`).slice(0, 6))}`);
        const faint = await page.evaluate(() => {
          const channel = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          const light = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number).reduce((sum, c, i) => sum + channel(c) * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = (node) => {
            for (; node; node = node.parentElement)
              if (!/^(rgba\(.*, 0\)|transparent)$/.test(getComputedStyle(node).backgroundColor)) return getComputedStyle(node).backgroundColor;
            return 'rgb(255, 255, 255)';
          };
          const texts = [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() &&
            [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && !(node instanceof SVGElement));
          return texts.map((node) => {
            const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
            return { text: node.textContent.slice(0, 40), contrast: (a + 0.05) / (b + 0.05) };
          }).filter(({ contrast }) => contrast < 4.5);
        });
        must(faint.length === 0, `${colorScheme}: hard to read: ${JSON.stringify(faint.slice(0, 3))}`);
      }
      await page.context().close();
    }
  }
}, {
  async 'what it keeps is bounded'() {
    const page = await open(gateway.page);
    const session = await Session.open(gateway, 'demo');
    await page.getByRole('button', { name: 'demo', exact: true }).click();
    const says = async (text) => {
      await session.call('stderr', { text });
      await until(async () => (await page.locator('.lines').textContent()).includes(text), `'${text}' does not come`);
    };
    await says('what was before');
    await page.evaluate(() => {
      opened.follow.close();
      opened.follow = follow(opened);
    });
    await says('what came after');
    must(await page.locator('.lines li', { hasText: 'what was before' }).count() === 1, 'lines are there twice');
    await session.call('stderr', { text: Array.from({ length: 500 }, (_, i) => `line ${i}`).join('\n') });
    await until(async () => (await page.locator('.lines').textContent()).includes('line 499'), 'the last line does not come');
    must(await page.locator('.lines li').count() === 400, `${await page.locator('.lines li').count()} lines are kept`);
    const kept = await page.evaluate(() => {
      disconnect();
      for (let i = 1; i <= 200; i++) remember({ ...latest, status: { ...latest.status, uptime_ms: latest.status.uptime_ms + i * 1000 } });
      return history.length;
    });
    must(kept > 55 && kept < 65, `${kept} snapshots are kept`);
    const points = await page.evaluate(() => {
      remember(latest);
      remember(latest); // as it comes when the connection was lost for a moment
      const { status, counters } = latest;
      const next = { ...latest, status: { ...status, uptime_ms: status.uptime_ms + 1000 }, counters: { ...counters, calls: counters.calls + 5 } };
      remember(next);
      showAll(next);
      return [...document.querySelectorAll('.trace')].map((line) => line.getAttribute('points')).join(' ');
    });
    must(/\d/.test(points) && !points.includes('NaN'), `lines have no place: ${points}`);
    await page.context().close();
  },

  async 'a retired server has a row of its own'() {
    const page = await open(gateway.page);
    const states = await page.evaluate(() => {
      disconnect();
      const demo = latest.status.servers.find(({ name }) => name === 'demo');
      showAll({ ...latest, status: { ...latest.status, servers: [demo, { ...demo, state: 'retiring' }] } });
      return [...document.querySelectorAll('#servers tbody tr td:nth-child(2)')].map((cell) => cell.textContent);
    });
    must(states.length === 2 && states[1] === 'retiring', `the states are ${states}`);
    await page.context().close();
  }
}, {
  async 'it leaves when nobody looks, and comes when there is a place'() {
    const page = await open(gateway.page, { expects: /status of 503/ });
    const hide = (isHidden) => page.evaluate((isHidden) => {
      Object.defineProperty(document, 'hidden', { get: () => isHidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
    await hide(true);
    await until(async () => await page.evaluate(() => source === null), 'it keeps its connection', 15_000);
    const others = [];
    for (let status = 200; status === 200 && others.length <= 16;)
      status = await new Promise((done, fail) => others.push(request({ host: '127.0.0.1', port: gateway.pagePort, path: '/events' }, (response) => {
        response.on('error', () => {}).resume();
        done(response.statusCode);
      }).on('error', fail).end()));
    await hide(false);
    await until(async () => await page.evaluate(() => source?.readyState === EventSource.CLOSED), 'it was not turned away');
    for (const other of others) other.destroy();
    await until(async () => await page.evaluate(() => source?.readyState === EventSource.OPEN), 'it stays away');
    await page.context().close();
  }
}, {
  async 'it goes on after a gateway that was killed, and after a restart'() {
    const page = await open(gateway.page);
    await page.getByRole('button', { name: 'demo', exact: true }).click();
    const wait = page.waitForFunction(() => document.getElementById('live').textContent.startsWith('no contact'), null, { timeout: 15_000, polling: 50 });
    must(await gateway.stop() === 0, 'the gateway did not end with 0');
    await wait;
    await gateway.start();
    await isLive(page);
    await until(async () => /^serving for \d+ (ms|s)$/.test(await page.locator('#state').textContent()), 'the state is old');
    const session = await Session.open(gateway, 'demo');
    await until(async () => await cell(page, 'demo', 'Sessions') === '1', 'the session is not shown');
    await session.call('stderr', { text: 'after the restart' });
    await until(async () => (await page.locator('.lines').textContent()).includes('after the restart'), 'its lines do not come', 15_000);
    await page.context().close();
  }
}];

await gateway.start();
browser = await chromium.launch({ executablePath: options.browser, args: ['--no-sandbox', '--host-resolver-rules=MAP evil.example 127.0.0.1'] });
try {
  for (const group of groups) {
    const left = Object.entries(group);
    await Promise.all([1, 2].map(async () => {
      for (let next; (next = left.shift());) await check('page', ...next);
    }));
  }
  await check('page', 'nothing was said on a console, thrown or violated', async () => must(complaints.length === 0, complaints.join(' | ')));
} finally {
  await browser.close();
  await check('page', 'the gateway ends with 0', async () => must(await gateway.stop() === 0, gateway.log.slice(-5).join(' | ')));
  rmSync(folder, { recursive: true, force: true });
}
finish();
