// The other end of the bare request: a process that answers every request with the same bytes and does nothing else.
import { connectBus } from '@sharedos/bus';

const [servers = '', user = '', pass = '', inboxPrefix = '', subject = '', replyBytes = '0'] = process.argv.slice(2);
const bus = await connectBus({ servers, user, pass, inboxPrefix, name: 'bench/echo' });
const reply = Buffer.alloc(Number(replyBytes), 'x');
bus.nats.subscribe(subject, { callback: (error, message) => void (error === null && message.respond(reply)) });
if (!(await bus.flush(5_000))) throw new Error('the broker does not answer');
process.stdout.write('listening\n');
