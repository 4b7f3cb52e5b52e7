// Loaded into an authorizer's own process before the service itself: the service is the one that ships, unchanged. It ends, by a
// signal that nothing of it survives, where it would write that a question was approved. The grant of that approval is in the log.
import { parseSubject } from '@sharedos/contracts';
import { Replies } from '../../../libs/bus/src/replies.ts';

const send = Replies.prototype.send;
Replies.prototype.send = async function ending(natsSubject, payload, headers, timeoutMs) {
  const text = typeof payload === 'string' ? payload : Buffer.from(payload).toString('utf8');
  if (parseSubject(natsSubject)?.verb === 'log' && text.includes('"EscalationApproved"')) process.kill(process.pid, 'SIGKILL');
  return send.call(this, natsSubject, payload, headers, timeoutMs);
};
