// What the interop scripts share: a check that is bounded in time and says how it went, and the sum at the end.

import { setTimeout as sleep } from 'node:timers/promises';

export const LIMIT = 30_000; // per check

export class Skip extends Error {}
export const skip = (reason) => { throw new Skip(reason); };

export function must(condition, complaint) {
  if (!condition) throw new Error(complaint);
}

export async function until(condition, complaint, limit = 10_000) {
  for (const end = Date.now() + limit; !await condition(); await sleep(20)) must(Date.now() < end, complaint);
}

// True if the promise fails; for calls that have to.
export const fails = (promise) => promise.then(() => false, () => true);

// True if a call's answer says no: an error of JSON-RPC, or a result that is one. That there was no answer is neither.
export const refused = (call) => call.then(({ isError }) => isError === true, (error) => {
  if (typeof (error.code ?? error.cause?.code) === 'number') return true;
  throw error;
});

export const results = [];

export async function check(client, name, run) {
  let timer;
  const outcome = await Promise.race([
    run().then(() => ['pass'], (error) => (error instanceof Skip ? ['skip', error.message] : ['FAIL', error.message])),
    new Promise((resolve) => { timer = setTimeout(resolve, LIMIT, ['FAIL', `no end after ${LIMIT} ms`]); })
  ]);
  clearTimeout(timer);
  results.push({ client, name, outcome: outcome[0].toLowerCase(), ...(outcome[1] && { message: outcome[1] }) });
  console.log(`${outcome[0]}  ${client.padEnd(10)}  ${name}${outcome[1] ? `: ${outcome[1].split('\n')[0].slice(0, 300)}` : ''}`);
  return outcome[0] === 'pass';
}

// Prints the sum, and ends the process with what it says.
export function finish() {
  const count = (outcome) => results.filter((result) => result.outcome === outcome).length;
  console.log(`${count('pass')} passed, ${count('fail')} failed, ${count('skip')} skipped`);
  process.exit(count('fail') ? 1 : 0);
}

export const textOf = (result) => result.content.map((part) => part.text ?? '').join('');
