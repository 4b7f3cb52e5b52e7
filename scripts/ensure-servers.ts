import { findServers } from '@sharedos/testing';

/** Finds or installs nats-server and redis-server, and says where they are. */
const found = await findServers();
process.stdout.write(`${JSON.stringify(found)}\n`);
