import type { Roots } from '@sharedos/bus';
import { type Address, SCHEMA_HEADER } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type AcceptanceRules, acceptRequest } from './accept-request.ts';
import { executorSettings } from './config.ts';
import { NOON, alice, scout } from './turn.fixture.ts';

const noon = Date.parse(NOON);
const rules: AcceptanceRules = { toolNamespaces: ['files', 'repo'], horizonMs: 3_600_000, skewMs: 30_000 };
const from = { namespaceId: 'w1', requester: alice };
const request = {
  version: '1',
  executionId: 'exec-1',
  agent: scout,
  message: {
    version: '1',
    id: 'm-1',
    sender: alice,
    receiver: scout,
    purpose: 'p1',
    payload: { secret: 'a payload' },
    traceId: 'trace-1',
    createdAt: NOON,
  },
  requestedAt: NOON,
};
const accepted = (more: object = {}, now = noon, schema: string | undefined = 'turn.request/1') =>
  acceptRequest(
    { data: Buffer.from(JSON.stringify({ ...request, ...more })), header: (name) => (name === SCHEMA_HEADER ? schema : undefined) },
    from,
    now,
    rules,
  );

describe('a turn request', () => {
  it('runs under who sent it, for the agent it names, at our own time', () => {
    expect(accepted()).toMatchObject({
      ok: true,
      value: {
        requester: alice,
        isFresh: true,
        context: {
          namespaceId: 'w1',
          actor: scout,
          authority: alice,
          owner: alice,
          purpose: 'p1',
          traceId: 'trace-1',
          enabledToolNamespaces: ['files', 'repo'],
          now: NOON,
        },
      },
    });
  });

  it('may name another owner, but nobody else’s authority', () => {
    const carol = { kind: 'human', userId: 'carol' };
    expect(accepted({ owner: carol })).toMatchObject({ ok: true, value: { context: { authority: alice, owner: carol } } });
    expect(accepted({ authority: carol })).toMatchObject({ ok: false, error: { error: { code: 'invalid_request' } } });
  });

  describe('of a host that states the context', () => {
    const host = { kind: 'service', serviceId: 'host' } as const;
    const carol = { kind: 'human', userId: 'carol' } as const;
    const clerk = { kind: 'agent', agentId: 'clerk' } as const;
    const stated = { actor: clerk, authority: carol, owner: alice, purpose: 'p2', traceId: 'trace-2' };
    const from = { namespaceId: 'w1', requester: host };
    const asked = (requester: Address, trustedHosts: Roots | undefined, more: object = {}) =>
      acceptRequest(
        { data: Buffer.from(JSON.stringify({ ...request, context: stated, ...more })), header: () => undefined },
        { ...from, requester },
        noon,
        trustedHosts === undefined ? rules : { ...rules, trustedHosts },
      );

    it('runs under it, at our own time and with the tools that are on', () =>
      expect(asked(host, { w1: [host] })).toMatchObject({
        ok: true,
        value: { requester: host, context: { ...stated, namespaceId: 'w1', enabledToolNamespaces: ['files', 'repo'], now: NOON } },
      }));
    it.each<[string, Address, Roots | undefined]>([
      ['no host is trusted', host, undefined],
      ['another is', host, { w1: [{ kind: 'service', serviceId: 'other' }] }],
      ['it is trusted elsewhere', host, { w2: [host] }],
      ['it is no service, whatever is listed', carol, { w1: [carol] }],
    ])('is refused where %s, and on record as of who sent it', (_, requester, trustedHosts) =>
      expect(asked(requester, trustedHosts, { message: { ...request.message, sender: requester } })).toMatchObject({
        ok: false,
        error: { error: { code: 'not_a_trusted_host' }, context: { authority: requester, actor: scout } },
      }),
    );
    it('is never a person, an agent or a group: the process does not start with such a setting', () => {
      const { SHAREDOS_TRUSTED_HOSTS: setting } = executorSettings;
      expect(setting.parse(JSON.stringify({ w1: [host] }))).toEqual({ w1: [host] });
      expect(setting.parse(undefined)).toEqual({});
      for (const one of [carol, clerk]) expect(setting.safeParse(JSON.stringify({ w1: [host, one] })).success).toBe(false);
    });
    it('is held to being the sender of its message as long as it states none', () => {
      expect(asked(host, { w1: [host] }, { context: undefined })).toMatchObject({
        ok: false,
        error: { error: { code: 'identity_mismatch' } },
      });
      expect(asked(host, { w1: [host] }, { context: undefined, message: { ...request.message, sender: host } })).toMatchObject({
        ok: true,
        value: { context: { authority: host, actor: scout } },
      });
    });
  });

  it('may narrow the tool namespaces that are on, and add none', () => {
    expect(accepted({ toolNamespaces: ['repo', 'admin'] })).toMatchObject({
      ok: true,
      value: { context: { enabledToolNamespaces: ['repo'] } },
    });
    expect(accepted({ toolNamespaces: [] })).toMatchObject({ ok: true, value: { context: { enabledToolNamespaces: [] } } });
  });

  it('is identity_mismatch when its message is of another sender than published it', () => {
    const refused = accepted({ message: { ...request.message, sender: { kind: 'human', userId: 'carol' } } });
    expect(refused).toMatchObject({
      ok: false,
      error: { executionId: 'exec-1', context: { authority: alice }, error: { code: 'identity_mismatch', retryable: false } },
    });
  });

  it.each([
    ['older than the ledger remembers', -3_600_001, false],
    ['as old as the ledger remembers', -3_600_000, true],
    ['as far ahead as a clock may be', 30_000, true],
    ['from the future', 30_001, false],
  ])('that is %s: fresh or not', (_, offsetMs, isFresh) => {
    expect(accepted({ requestedAt: new Date(noon + offsetMs).toISOString() })).toMatchObject({ ok: true, value: { isFresh } });
  });

  it.each([
    ['an unknown key', { intent: 'x' }],
    ['no agent', { agent: alice }],
    ['a limit out of range', { options: { maxSteps: 1_001 } }],
    ['no instant', { requestedAt: 'yesterday' }],
  ])('with %s is none, and its refusal tells nothing of its content', (_, more) => {
    const refused = accepted(more);
    expect(refused).toMatchObject({ ok: false, error: { error: { code: 'invalid_request', retryable: false } } });
    expect(JSON.stringify(refused)).not.toMatch(/secret|yesterday/);
    expect(refused).not.toHaveProperty('error.context');
  });

  it('is none under another schema, nor as bytes that are no JSON', () => {
    expect(accepted({}, noon, 'turn.cancel/1')).toMatchObject({ ok: false, error: { error: { code: 'invalid_request' } } });
    expect(acceptRequest({ data: Buffer.from([0xff, 0xfe]), header: () => undefined }, from, noon, rules)).toMatchObject({ ok: false });
  });
});
