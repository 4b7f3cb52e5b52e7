// Makes the streams and consumers on the broker of SHAREDOS_NATS_URL, as the user `provisioner`. May be run at every start.
import { describeProvisionRefusal, provision, withFiles } from '@sharedos/bus';

const fail = (line: string): never => {
  process.stderr.write(`provision: ${line}\n`);
  process.exit(1);
};
const env = withFiles(process.env, ['SHAREDOS_NATS_PASSWORD'], fail);
const setting = (name: string): string => env[name] || fail(`${name} is not set`);
const caFile = env['SHAREDOS_NATS_CA_FILE'];
const replicas = Number(env['SHAREDOS_STREAM_REPLICAS'] || 1);
if (![1, 3, 5].includes(replicas)) fail('SHAREDOS_STREAM_REPLICAS must be 1, 3 or 5');

const made = await provision(
  {
    servers: setting('SHAREDOS_NATS_URL').split(','),
    user: 'provisioner',
    pass: setting('SHAREDOS_NATS_PASSWORD'),
    ...(caFile === undefined ? {} : { caFile }),
  },
  { replicas },
);
if (!made.ok) fail(describeProvisionRefusal(made.error));
process.stdout.write('{"event":"provisioned"}\n');
