import { type BrokerFacts, isVersionBefore } from '@sharedos/bus';
import { type Finding, error, note } from './finding.ts';

const OLDEST = '2.9.10';
const SYNCS_WHEN_ASKED = '2.10.0';

/** @param payloadBytesMax What the services send at most. */
export const checkBroker = (facts: BrokerFacts, payloadBytesMax: number): readonly Finding[] => [
  ...(isVersionBefore(facts.version, OLDEST)
    ? [error('broker_too_old', `nats-server is ${facts.version}`, `install ${OLDEST} or later`)]
    : isVersionBefore(facts.version, SYNCS_WHEN_ASKED)
      ? [
          note(
            'acknowledged_before_disk',
            `nats-server ${facts.version} writes to the disk every minute: what it acknowledged in the last one can be lost with power`,
            'install 2.10 or later and set "sync_interval: always" in its jetstream block, or run three of them',
          ),
        ]
      : []),
  ...(facts.jetstream
    ? []
    : [error('jetstream_off', 'the broker has no JetStream', 'use the generated configuration: "sharedos auth init"')]),
  ...(facts.payloadBytesMax < payloadBytesMax
    ? [
        error(
          'payload_too_small',
          `the broker takes messages of ${facts.payloadBytesMax} bytes`,
          `set max_payload to ${payloadBytesMax}, as the generated configuration does`,
        ),
      ]
    : []),
];
