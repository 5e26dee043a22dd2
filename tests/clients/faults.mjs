// What a client itself does not do, or does wrong, whatever gateway is there: the reason, by client, transport and check.
// Such a check is made, as far as it can be, and skipped if it fails. That the same client comes back has to fail then: else its row is to go.

const ANSWER = 'the answer after a cut';
const ENDS = 'a call that was cut ends';
const SAME = 'the same client comes back';

const NO_ID = 'over HTTP+SSE it drops the id of the last event when it opens its stream anew, and the answer went to the one that was cut';
const WAITS = `${NO_ID}; it waits for it until the time of the call is over`;
const NEVER = 'it never opens the stream of HTTP+SSE anew';
const GET_ALONE = 'it comes back for the stream of a GET, and not for that of a POST';
const MODERN = '2026-07-28 resumes nothing, and the client waits for the lost answer until the time of the call is over';

const rows = [
  { clients: /./, way: 'sse', check: ANSWER, reason: NO_ID },
  { clients: /./, way: 'sse', check: ENDS, reason: WAITS },
  { clients: /^(ai-|mcp-remote-0\.1\.)/, way: 'sse', check: SAME, reason: NEVER },
  { clients: /^sdk-1\.17$/, way: 'http', check: ANSWER, reason: GET_ALONE },
  { clients: /^client-\S+ auto$/, way: 'http', check: ANSWER, reason: MODERN }
];

// Undefined: nothing is known.
export function faultOf(client, way, check) {
  return rows.find((row) => row.clients.test(client) && row.way === way && row.check === check)?.reason;
}
