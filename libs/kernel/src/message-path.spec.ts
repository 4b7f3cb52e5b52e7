import { type MessageEnvelope, addressKey } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { HOPS_MAX, answersMessage, pathFault, provenanceOf } from './message-path.ts';
import { alice, bob, carol, dave } from './testing/base-world.ts';

const message = (more: Partial<MessageEnvelope> = {}): MessageEnvelope => ({
  version: '1',
  id: 'm-1',
  sender: alice,
  receiver: bob,
  purpose: 'p1',
  payload: null,
  traceId: 't-1',
  createdAt: '2026-01-01T12:00:00Z',
  ...more,
});
const anna = { kind: 'agent', agentId: 'anna' } as const;
const ben = { kind: 'agent', agentId: 'ben' } as const;
const cleo = { kind: 'agent', agentId: 'cleo' } as const;
/** A message that the receiver of `cause` sends in the turn it started. */
const following = (cause: MessageEnvelope, id: string, receiver: MessageEnvelope['receiver'], more: Partial<MessageEnvelope> = {}) =>
  message({ id, sender: cause.receiver, receiver, provenance: provenanceOf('turn', cause), ...more });

describe('the provenance of a message', () => {
  it('names what made it, and no parents where it started by itself', () =>
    expect(provenanceOf('message.send')).toEqual({ source: 'message.send', parentIds: [] }));

  it('grows by one parent and one sender a hop', () => {
    const first = message({ sender: alice, receiver: anna });
    const second = following(first, 'm-2', ben);
    const third = following(second, 'm-3', cleo);
    expect(third.provenance).toEqual({
      source: 'turn',
      parentIds: ['m-1', 'm-2'],
      metadata: { senders: [addressKey(alice), addressKey(anna)] },
    });
  });
});

describe('a message that follows from others', () => {
  const first = message({ sender: alice, receiver: anna });

  it('may go on to somebody new', () => expect(pathFault(following(first, 'm-2', ben))).toBeUndefined());
  it('is refused as a loop to an agent that waits for it', () => {
    const second = following(first, 'm-2', ben);
    expect(pathFault(following(second, 'm-3', anna))).toBe('message_loop');
  });
  it('is refused as a loop to its own sender', () => expect(pathFault(following(first, 'm-2', anna))).toBe('message_loop'));
  it('may go to a human on the way, for whom no turn is started', () => expect(pathFault(following(first, 'm-2', alice))).toBeUndefined());
  it('may go back the way it came as a reply', () => {
    const second = following(first, 'm-2', ben);
    expect(pathFault(following(second, 'm-3', anna, { replyTo: 'm-2' }))).toBeUndefined();
  });
  it('is refused after too many hops', () => {
    let last = first;
    for (let hop = 1; hop <= HOPS_MAX; hop += 1) {
      last = following(last, `h-${hop}`, { kind: 'agent', agentId: `a-${hop}` });
      expect(pathFault(last)).toBeUndefined();
    }
    expect(pathFault(following(last, 'one-too-many', ben))).toBe('message_hop_limit');
  });
  it('is not looked at where it follows from none', () => expect(pathFault(message({ receiver: alice }))).toBeUndefined());
});

describe('a reply', () => {
  const asked = message();
  const reply = message({ id: 'r-1', sender: bob, receiver: alice, replyTo: 'm-1' });

  it('answers what was asked of its sender', () => expect(answersMessage(reply, asked)).toBe(true));
  it.each([
    ['of another request', { replyTo: 'm-2' }],
    ['of nothing', { replyTo: undefined as never }],
    ['from a stranger', { sender: carol }],
    ['to another', { receiver: dave }],
    ['for another purpose', { purpose: 'p2' }],
    ['in another trace', { traceId: 't-2' }],
  ])('does not when it is %s', (_, more) => expect(answersMessage({ ...reply, ...more }, asked)).toBe(false));
});
