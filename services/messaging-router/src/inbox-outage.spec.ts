import { unavailable } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { acknowledgeMessage } from './acknowledge-message.ts';
import type { Ports } from './ports.ts';
import { readInbox } from './read-inbox.ts';
import { RouteLeases } from './route-leases.ts';

const clerk = { kind: 'agent', agentId: 'clerk' } as const;
const silent = { connected: true, replies: { send: async () => unavailable('nobody answers') } } as unknown as Ports['bus'];
const ports = { bus: silent, routes: new RouteLeases(silent) } as unknown as Ports;
const delivery = { namespaceId: 'w1', principal: clerk, rest: [], signal: new AbortController().signal } as const;

describe('an inbox that does not answer', () => {
  const refusal = { ok: false, error: { code: 'inbox_unavailable', retryable: true } };
  it('is not told as empty', async () => expect(await readInbox(ports)({}, { ...delivery, verb: 'message.inbox' })).toMatchObject(refusal));
  it('is not told as having nothing to acknowledge', async () =>
    expect(await acknowledgeMessage(ports)({ sequence: 7 }, { ...delivery, verb: 'message.ack' })).toMatchObject(refusal));
});
