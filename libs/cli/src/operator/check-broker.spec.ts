import { describe, expect, it } from 'vitest';
import { checkBroker } from './check-broker.ts';

const facts = { version: '2.10.4', jetstream: true, payloadBytesMax: 8_388_608 };
const codes = (changed: Partial<typeof facts>): readonly string[] =>
  checkBroker({ ...facts, ...changed }, facts.payloadBytesMax).map(({ code }) => code);

describe('what a broker says of itself', () => {
  it('is as it should be', () => expect(codes({})).toEqual([]));
  it.each(['2.9.9', '2.8.4', '1.4.0', ''])('is too old as %s', (version) => expect(codes({ version })).toEqual(['broker_too_old']));
  it.each(['2.9.10', '2.9.25'])('does not write to the disk when asked as %s', (version) =>
    expect(codes({ version })).toEqual(['acknowledged_before_disk']),
  );
  it.each(['2.10.0', '2.11.3', '3.0.0'])('is new enough as %s', (version) => expect(codes({ version })).toEqual([]));
  it('has no JetStream', () => expect(codes({ jetstream: false })).toEqual(['jetstream_off']));
  it('takes too small messages', () => expect(codes({ payloadBytesMax: 1_048_576 })).toEqual(['payload_too_small']));
});
