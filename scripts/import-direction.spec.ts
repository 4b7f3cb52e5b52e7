import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Each file holds one line that the import direction forbids, and nothing else that a rule could object to. */
const FORBIDDEN: readonly (readonly [file: string, line: string])[] = [
  ['libs/contracts/src/a.ts', "export { given } from '@sharedos/kernel';"],
  ['libs/contracts/src/b.ts', "import { connectBus } from '@sharedos/bus'; connectBus();"],
  ['libs/contracts/src/c.ts', "import { readFile } from 'node:fs/promises'; readFile;"],
  ['libs/contracts/src/wire/d.ts', "import type { Decider } from '../../../kernel/src/decider.ts'; export type D = Decider;"],
  ['libs/kernel/src/a.ts', "export { connectBus } from '@sharedos/bus';"],
  ['libs/kernel/src/b.ts', "export { withSpan } from '@sharedos/telemetry';"],
  ['libs/kernel/src/c.ts', "export { randomUUID } from 'node:crypto';"],
  ['libs/kernel/src/d.ts', "export { readFile } from 'fs/promises';"],
  ['libs/kernel/src/e.ts', 'export const now = () => Date.now();'],
  ['libs/kernel/src/f.ts', 'export const chance = () => Math.random();'],
  ['libs/kernel/src/g.ts', 'export const home = process.env;'],
  ['libs/kernel/src/h.ts', 'export const today = () => new Date();'],
  ['libs/kernel/src/i.ts', "export type { Msg } from 'nats';"],
  ['libs/telemetry/src/a.ts', "export type { Id } from '@sharedos/contracts';"],
  ['libs/bus/src/a.ts', "export { decide } from '@sharedos/kernel';"],
  ['libs/bus/src/b.ts', "export { Redis } from 'ioredis';"],
  ['libs/event-store/src/memory.ts', "export { connect } from 'nats';"],
  ['libs/event-store/src/a.ts', "export { ledgerContract } from '@sharedos/ledger';"],
  ['libs/ledger/src/jetstream.ts', "export { connect } from 'nats';"],
  ['libs/ledger/src/a.ts', "export { startAuthorizer } from '@sharedos/authorizer';"],
  ['libs/usage/src/a.ts', "export { connectBus } from '@sharedos/bus';"],
  ['libs/tools/src/a.ts', "export { envelope } from '@sharedos/runtime';"],
  ['libs/runtime/src/a.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['libs/client/src/a.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['libs/client/src/b.ts', "export { connect } from '@nats-io/transport-node';"],
  ['libs/cli/src/a.ts', "export { compose } from '@sharedos/authorizer';"],
  ['libs/testing/src/a.ts', "export { compose } from '@sharedos/tool-executor';"],
  ['services/authorizer/src/a.ts', "export { compose } from '@sharedos/tool-executor';"],
  ['services/authorizer/src/b.ts', "export { compose } from '../../tool-executor/src/compose.ts';"],
  ['services/tool-executor/src/a.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['services/tool-executor/src/b.ts', "export { connect } from 'nats';"],
  ['services/audit-projector/src/a.ts', "export { connectSharedOS } from '@sharedos/client';"],
  ['services/gateway/src/a.ts', "export { connectBus } from '@sharedos/bus';"],
  ['services/gateway/src/b.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['services/audit-projector/src/a.spec.ts', "export { compose } from '@sharedos/authorizer';"],
];

const ALLOWED: readonly (readonly [file: string, line: string])[] = [
  ['libs/contracts/src/z.ts', "export { hash } from 'node:crypto';"],
  ['libs/kernel/src/z.ts', "export { hashOf } from '@sharedos/contracts';"],
  ['libs/bus/src/z.ts', "export { connect } from 'nats';"],
  ['libs/event-store/src/jetstream.ts', "export { connect } from 'nats';"],
  ['libs/usage/src/redis.ts', "export { Redis } from 'ioredis';"],
  ['libs/cli/src/z.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['services/authorizer/src/z.ts', "export { decide } from '@sharedos/kernel';"],
  ['services/gateway/src/z.ts', "export { connectSharedOS } from '@sharedos/client';"],
  ['services/authorizer/src/z.spec.ts', "export { startLocalStack } from '@sharedos/testing';"],
  ['test/attacks/z.spec.ts', "export { connect } from 'nats';"],
];

const DIRECTION = ['no-restricted-imports', 'no-restricted-globals', 'no-restricted-properties', 'no-nodejs-modules'];

let folder: string;
let offended: ReadonlyMap<string, readonly string[]>;

beforeAll(async () => {
  // The rules are tried on a tree of the same shape elsewhere, so that no other run sees the forbidden files.
  folder = await mkdtemp(join(tmpdir(), 'sharedos-lint-'));
  const config = JSON.parse(await readFile(join(root, '.oxlintrc.json'), 'utf8')) as { options: object };
  await writeFile(join(folder, '.oxlintrc.json'), JSON.stringify({ ...config, options: { ...config.options, typeAware: false } }));
  await cp(join(root, 'tsconfig.base.json'), join(folder, 'tsconfig.json'));
  for (const [file, line] of [...FORBIDDEN, ...ALLOWED]) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), `${line}\n`);
  }
  offended = await lint(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const lint = async (cwd: string): Promise<ReadonlyMap<string, readonly string[]>> => {
  const output = await new Promise<string>((resolve) => {
    execFile(join(root, 'node_modules/.bin/oxlint'), ['--format', 'json'], { cwd, timeout: 30_000 }, (_, stdout) => resolve(stdout));
  });
  const { diagnostics } = JSON.parse(output) as { diagnostics: { filename: string; code: string }[] };
  const rules = new Map<string, string[]>();
  for (const { filename, code } of diagnostics) rules.set(filename, [...(rules.get(filename) ?? []), code]);
  return rules;
};

const directionOffences = (file: string): readonly string[] =>
  (offended.get(file) ?? []).filter((code) => DIRECTION.some((rule) => code.includes(rule)));

describe('the import direction', () => {
  it.each(FORBIDDEN)('refuses in %s: %s', (file) => {
    expect(directionOffences(file)).not.toEqual([]);
  });

  it.each(ALLOWED)('lets %s: %s', (file) => {
    expect(directionOffences(file)).toEqual([]);
  });
});
