import { describe, expect, it } from 'vitest';
import { brokerAccounts, renderNatsConfig } from './nats-config.ts';

const listener = { name: 'spec', host: '127.0.0.1', port: 4222, storeDir: '/data/js' };
const user = { name: 'authorizer', password: 'secret', rights: { publish: ['a.b'], subscribe: ['c.>'] } };

describe('the written configuration', () => {
  it('states both rights of every user', () => {
    const text = renderNatsConfig(listener, { core: [user], edge: [{ ...user, name: 'principal.x' }] });
    expect(text.match(/publish \{ allow: \[\s+"a\.b"\s+\] \}/g)).toHaveLength(2);
    expect(text.match(/subscribe \{ allow: \[\s+"c\.>"\s+\] \}/g)).toHaveLength(2);
  });
  it('lets an agent answer what it was asked, and nobody else anything', () => {
    const principals = [
      { namespaceId: 'tenant', principal: { kind: 'agent', agentId: 'scout' } },
      { namespaceId: 'tenant', principal: { kind: 'human', userId: 'alice' } },
    ] as const;
    const text = renderNatsConfig(
      listener,
      brokerAccounts(principals, () => 'secret'),
    );
    expect(text.match(/allow_responses/g)).toHaveLength(1);
    const [agent] = text.split('user: ').filter((part) => part.includes('allow_responses'));
    expect(agent).toMatch(/^"principal\.tenant\.agent\.scout"/);
    expect(agent).toContain('allow_responses { max: 1, expires: "600s" }');
  });
  it('gives JetStream to CORE alone and never allows responses', () => {
    const text = renderNatsConfig(
      listener,
      brokerAccounts([], () => 'secret'),
    );
    expect(text.match(/jetstream: enabled/g)).toHaveLength(1);
    expect(text.indexOf('jetstream: enabled')).toBeLessThan(text.indexOf('EDGE {'));
    expect(text).not.toMatch(/allow_responses|no_auth_user/);
  });
  it('names a variable where the password is in the environment', () =>
    expect(renderNatsConfig(listener, { core: [{ ...user, password: { env: 'AUTHORIZER_PASSWORD' } }], edge: [] })).toContain(
      'password: $AUTHORIZER_PASSWORD\n',
    ));
  it.each([
    ['publish', { publish: [], subscribe: ['c'] }],
    ['subscribe', { publish: ['a'], subscribe: [] }],
  ])('is refused for a user with nothing to %s: the server would take that for everything', (_, rights) =>
    expect(() => renderNatsConfig(listener, { core: [{ ...user, rights }], edge: [] })).toThrow(/all of them/),
  );
  it.each(['a"b', 'a\\b', 'a\nb'])('is refused for a value that would end its string: %j', (password) =>
    expect(() => renderNatsConfig(listener, { core: [{ ...user, password }], edge: [] })).toThrow(RangeError),
  );
  it('is refused for a name of a variable that is none', () =>
    expect(() => renderNatsConfig(listener, { core: [{ ...user, password: { env: 'A B' } }], edge: [] })).toThrow(RangeError));
});
