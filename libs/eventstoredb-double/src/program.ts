import { parseArgs } from 'node:util';
import { startEventStoreDouble } from './server.ts';

/** The double as a program of its own, for who wants to kill it: `node program.ts --port 2113 --data folder`. */
const { values } = parseArgs({
  options: { port: { type: 'string' }, data: { type: 'string' }, 'foreign-every': { type: 'string' } },
});
const { port, data, 'foreign-every': foreignEvery } = values;
const double = await startEventStoreDouble({
  ...(port === undefined ? {} : { port: Number(port) }),
  ...(data === undefined ? {} : { dataDir: data }),
  ...(foreignEvery === undefined ? {} : { foreignEvery: Number(foreignEvery) }),
});
process.stdout.write(`${JSON.stringify({ event: 'ready', connectionString: double.connectionString })}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void double.close().then(() => process.exit(0)));
