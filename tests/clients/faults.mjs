// What a client itself does not do, or does wrong, whatever gateway is there: the reason, by client, transport and check.
// Such a check is made, as far as it can be, and its outcome does not count.

const ANSWER = 'the answer after a cut';
const ENDS = 'a call that was cut ends';
const SAME = 'the same client comes back';

const NO_RESUMING = 'HTTP+SSE resumes nothing: the answer went to the stream that was cut';
const WAITS = `${NO_RESUMING}, and the client waits for it until the time of the call is over`;
const NO_HANDSHAKE = 'it opens the stream anew, which is another session of HTTP+SSE, and sends no initialize there';
const GET_ALONE = 'it comes back for the stream of a GET, and not for that of a POST';
const MODERN = '2026-07-28 resumes nothing, and the client waits for the lost answer until the time of the call is over';

const rows = [
  { clients: /./, way: 'sse', check: ANSWER, reason: NO_RESUMING },
  { clients: /./, way: 'sse', check: ENDS, reason: WAITS },
  { clients: /^(?!inspector)/, way: 'sse', check: SAME, reason: NO_HANDSHAKE },
  { clients: /^sdk-1\.17$/, way: 'http', check: ANSWER, reason: GET_ALONE },
  { clients: /^client-\S+ auto$/, way: 'http', check: ANSWER, reason: MODERN }
];

// Undefined: nothing is known.
export function faultOf(client, way, check) {
  return rows.find((row) => row.clients.test(client) && row.way === way && row.check === check)?.reason;
}
