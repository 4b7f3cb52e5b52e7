import { describe, expect, it } from 'vitest';
import { NAMESPACE, alice, authorizerWorld, bob, settled } from '../authorizer.fixture.ts';

const positionOfLog = async (store: { barrier(ms: number): Promise<{ ok: boolean; value?: number }> }) =>
  (await store.barrier(100)).value ?? NaN;

describe('the fold of the log', () => {
  it('is not to be trusted while the log is silent, and is again with its next sign of life', async () => {
    const world = await authorizerWorld();
    expect(world.fold.trouble).toBeUndefined();
    world.store.stop();
    await settled();
    expect(world.fold.trouble).toBe('the log is silent');
    expect(world.troubles).toEqual(['the log is silent']);
    world.store.resume();
    await settled();
    expect(world.fold.trouble).toBeUndefined();
  });

  it('waits for a position until it has been folded', async () => {
    const world = await authorizerWorld();
    const reached = world.fold.until(1, 1_000);
    await world.issue('g');
    expect(await reached).toEqual({ ok: true, value: undefined });
    expect(world.fold.index.heldAt(NAMESPACE, bob, alice, 1, Infinity)).toHaveLength(1);
    expect(await world.fold.until(1, 0)).toMatchObject({ ok: true });
  });

  it('waits no longer than it was told to', async () => {
    const world = await authorizerWorld();
    expect(await world.fold.until(1, 5)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await world.fold.until(1, -5)).toMatchObject({ ok: false });
  });

  it('lets whoever waits go when it is closed', async () => {
    const world = await authorizerWorld();
    const reached = world.fold.until(1, 60_000);
    await world.close();
    expect(await reached).toMatchObject({ ok: false });
  });

  it.each([
    ['is no record', 'sharedos.v1.w1.log.grant.g', 'not json'],
    ['is of an unknown version', 'sharedos.v1.w1.log.grant.g', undefined],
  ])('is not to be trusted once an event %s: it may be a revocation', async (_, natsSubject, body) => {
    const world = await authorizerWorld();
    await world.issue('first');
    const waiting = world.fold.until(99, 1_000);
    if (body === undefined) {
      const event = {
        eventId: '6f1c1f0e-58ab-4b1e-9b0a-3a1d6f0c9d42',
        type: 'GrantIssued',
        schemaVersion: 2,
        at: '2026-01-01T12:00:00Z',
        principal: alice,
        correlationId: 'c',
        data: {},
      };
      expect(await world.store.append({ category: 'grant', namespaceId: NAMESPACE, id: 'new' }, 0, [event])).toMatchObject({ ok: true });
    } else {
      world.store.appendRaw(natsSubject, Buffer.from(body));
    }
    await settled();
    expect(world.fold.trouble).toContain('cannot be read');
    expect(world.fold.position).toBe(await positionOfLog(world.store));
    expect(await world.fold.until(1, 100)).toMatchObject({ ok: false });
    await world.close();
    expect(await waiting).toMatchObject({ ok: false });
    expect(await world.open()).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
  });
});
