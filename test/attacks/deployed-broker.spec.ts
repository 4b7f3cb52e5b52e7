import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findServers } from '@sharedos/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { deployedBrokerConfig } from '../../deploy/nats/broker-config.ts';

const folder = mkdtempSync(join(tmpdir(), 'sharedos-deployed-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string): string => fileURLToPath(new URL(`../../deploy/nats/${name}`, import.meta.url));
const deployed = readFileSync(file('nats.conf'), 'utf8');

const variables = [...deployed.matchAll(/password: \$(\w+)/g)].map((match) => match[1] as string);
const check = async (env: Readonly<Record<string, string>>): Promise<string> => {
  const { nats } = await findServers();
  const { stdout, stderr } = await promisify(execFile)(nats, ['-t', '-c', file('nats.conf')], { env });
  return stdout + stderr;
};

describe('the deployed configuration of the broker', () => {
  it('is the one that the subject table gives now', () => expect(deployed).toBe(deployedBrokerConfig(file('principals.json'))));
  it('holds no password, and one variable for each user', () => {
    expect(deployed.match(/password:/g)).toHaveLength(variables.length);
    expect(new Set(variables).size).toBe(variables.length);
  });
  it('is accepted by the server', async () =>
    expect(await check(Object.fromEntries(variables.map((name) => [name, `secret-${name}`])))).toMatch(/configuration file .* is valid/));
  it('is refused by the server while a password is not set', () => expect(check({})).rejects.toThrow(/variable reference/));
  it('names no principal twice', () => {
    const twice = join(folder, 'principals.json');
    const entry = { namespaceId: 'demo', principal: { kind: 'human', userId: 'alice' }, passwordVariable: 'A' };
    writeFileSync(twice, JSON.stringify([entry, { ...entry, passwordVariable: 'B' }]));
    expect(() => deployedBrokerConfig(twice)).toThrow(/twice/);
  });
});
