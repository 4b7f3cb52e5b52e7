// Makes the streams and consumers on the broker of SHAREDOS_NATS_URL, as the user `provisioner`. May be run at every start.
import { describeProvisionRefusal, provision } from '@sharedos/bus';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value !== undefined && value !== '') return value;
  process.stderr.write(`provision: ${name} is not set\n`);
  process.exit(1);
};

const made = await provision({
  servers: setting('SHAREDOS_NATS_URL').split(','),
  user: 'provisioner',
  pass: setting('SHAREDOS_NATS_PASSWORD'),
});
if (!made.ok) {
  process.stderr.write(`provision: ${describeProvisionRefusal(made.error)}\n`);
  process.exit(1);
}
process.stdout.write('{"event":"provisioned"}\n');
