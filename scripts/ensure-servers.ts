import { ServersMissing, findServers } from '@sharedos/testing';

/** Finds or installs the servers of the local stack before anything needs them, and says where they are. */
const found = await findServers({ onProgress: (line) => process.stdout.write(`${line}\n`) }).catch((error: unknown) => {
  if (error instanceof ServersMissing) return error;
  throw error;
});
if (found instanceof ServersMissing) {
  process.stderr.write(`${found.message}\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`nats-server: ${found.nats}\nredis-server: ${found.redis}\n`);
}
