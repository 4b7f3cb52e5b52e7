// Writes the broker's configuration to standard output: `node deploy/nats/render.ts [principals.json] > deploy/nats/nats.conf`.
import { fileURLToPath } from 'node:url';
import { deployedBrokerConfig } from './broker-config.ts';

process.stdout.write(deployedBrokerConfig(process.argv[2] ?? fileURLToPath(new URL('./principals.json', import.meta.url))));
