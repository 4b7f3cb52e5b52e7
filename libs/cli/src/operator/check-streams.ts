import {
  type Bus,
  checkStreams,
  consumerInfo,
  describeProvisionRefusal,
  DURABLE_CONSUMERS,
  streamInfo,
  streamSettings,
} from '@sharedos/bus';
import type { StreamName } from '@sharedos/contracts';
import { type Finding, error, warning } from './finding.ts';

const ANSWER_MS = 3_000;
const FULL = 0.8;
const PROVISION = 'run "npx node deploy/nats/provision.ts" as the provisioner';

/** Whether the streams are there, are set as this release needs them, and have room. */
export const checkAllStreams = async (bus: Bus): Promise<readonly Finding[]> => {
  const names = Object.keys(streamSettings()) as StreamName[];
  return (
    await Promise.all([...names.map((name) => checkStream(bus, name)), ...Object.values(DURABLE_CONSUMERS).map(checkConsumer(bus))])
  ).flat();
};

const checkStream = async (bus: Bus, name: StreamName): Promise<readonly Finding[]> => {
  const same = await checkStreams(bus.nats, [name]);
  if (!same.ok) {
    const { error: refusal } = same;
    const what = describeProvisionRefusal(refusal);
    if (refusal.kind === 'unavailable') return [error('stream_silent', `stream ${name}: ${what}`, 'look at the broker and its disk')];
    if (refusal.kind === 'contradiction' && refusal.setting === 'existence')
      return [error('stream_missing', `there is no stream ${name}`, PROVISION)];
    return [error('stream_differs', what, `${PROVISION}; it says so if that setting cannot be changed in place`)];
  }
  const info = await streamInfo(bus, name, { timeoutMs: ANSWER_MS });
  if (!info.ok) return [error('stream_silent', `stream ${name}: ${info.error.reason}`, 'look at the broker and its disk')];
  const bytesMax = info.value.config.max_bytes ?? -1;
  const used = bytesMax > 0 ? info.value.state.bytes / bytesMax : 0;
  return used < FULL
    ? []
    : [warning('stream_filling', `stream ${name} is ${Math.round(used * 100)} % full`, 'see StreamFilling in docs/operating.md')];
};

const checkConsumer =
  (bus: Bus) =>
  async ({ stream, name }: { readonly stream: string; readonly name: string }): Promise<readonly Finding[]> => {
    const info = await consumerInfo(bus, stream, name, { timeoutMs: ANSWER_MS });
    return info.ok ? [] : [error('consumer_missing', `consumer ${name} of ${stream}: ${info.error.reason}`, PROVISION)];
  };
