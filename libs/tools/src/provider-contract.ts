import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Address, type Json, type ResourceOperation, ResourceResult } from '@sharedos/contracts';
import type { ResourceProvider } from '@sharedos/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownerFolder } from './confinement/owner-folder.ts';
import type { ResourcePlane } from './resource-tool.ts';

const AT = '2026-01-01T12:00:00.000Z';
const owner: Address = { kind: 'human', userId: 'maren' };
const other: Address = { kind: 'human', userId: 'eve' };

/** What the suite needs of a provider over one folder of the host. */
export interface ProviderUnderTest {
  readonly plane: ResourcePlane;
  readonly provider: ResourceProvider;
  /** The folder of the host under which everything is. */
  readonly root: string;
  /** All there is to see of the folder, but for what the provider keeps for itself. */
  seen(): readonly string[];
  /** A path of `owner` in namespace `north` at which every action of `inputs` has something to work on. */
  readonly path: readonly string[];
  /** For each action an input that fits it. */
  readonly inputs: Readonly<Record<string, Json | undefined>>;
  remove(): void;
}

const PATHS_REFUSED: readonly (readonly string[])[] = [
  ['..'],
  ['a', '..', 'b'],
  ['.'],
  ['../outside'],
  ['/etc'],
  ['a\\b'],
  ['a\0'],
  ['a\u0001'],
  [''],
  [' a'],
  ['a\ud800'],
  ['x'.repeat(256)],
  ['.git'],
  ['a', '.GIT', 'b'],
];

/** What every provider of a standard plane holds to, whatever it is over. @see spec/tools.md §3 */
export const providerContract = (name: string, open: () => ProviderUnderTest): void => {
  describe(`${name} as a resource provider`, () => {
    let under: ProviderUnderTest;
    beforeEach(() => {
      under = open();
    });
    afterEach(() => under.remove());

    const ask = (action: string, changed: Partial<ResourceOperation> = {}, cancel: AbortSignal = new AbortController().signal) => {
      const input = under.inputs[action];
      const context = {
        namespaceId: 'north',
        actor: { kind: 'agent', agentId: 'scout' },
        authority: owner,
        owner,
        purpose: 'contract',
        traceId: 'trace',
        enabledToolNamespaces: [],
        now: AT,
      } as const;
      const resource = { namespace: under.plane.namespace, path: [...under.path], owner };
      return under.provider.invoke(
        {
          operationId: `op-${action}`,
          context: { ...context, enabledToolNamespaces: [] },
          resource,
          action,
          ...(input === undefined ? {} : { input }),
          ...changed,
        },
        cancel,
      );
    };
    const codeOf = async (asked: ReturnType<typeof ask>): Promise<string> => {
      const result = await asked;
      return result.status === 'succeeded' ? 'succeeded' : result.error.code;
    };
    const actions = (): readonly string[] => Object.values(under.plane.rows).map(({ action }) => action);

    it('answers every action of its plane with a result of that operation, in the published form', async () => {
      for (const row of Object.values(under.plane.rows)) {
        const result = await ask(row.action);
        expect(ResourceResult.safeParse(result).success).toBe(true);
        expect(result.operationId).toBe(`op-${row.action}`);
        if (result.status === 'succeeded') expect(row.output.safeParse(result.output).success, row.action).toBe(true);
        else expect(result.error.code, row.action).not.toBe('action_not_supported');
      }
    });

    it('refuses every other action, and input that does not fit, and changes nothing', async () => {
      const before = under.seen();
      for (const action of ['', '*', 'toString', '__proto__', 'write', 'push', 'exec'])
        expect(await codeOf(ask(action)), action).toBe('action_not_supported');
      for (const action of actions()) {
        for (const input of [{ unknown: 1 }, 'text', [], null]) expect(await codeOf(ask(action, { input })), action).toBe('invalid_input');
      }
      expect(under.seen()).toEqual(before);
    });

    it('refuses a path that could name something else, before anything is touched', async () => {
      const before = under.seen();
      for (const action of actions())
        for (const path of PATHS_REFUSED)
          expect(
            await codeOf(ask(action, { resource: { namespace: under.plane.namespace, path: [...path], owner } })),
            `${action} ${path.join('/')}`,
          ).toBe('path_refused');
      expect(under.seen()).toEqual(before);
    });

    it('refuses a resource of another namespace, the files of the other plane among them', async () => {
      const before = under.seen();
      for (const action of actions())
        for (const namespace of ['files', 'repo', 'Files', 'sharedos'].filter((each) => each !== under.plane.namespace))
          expect(await codeOf(ask(action, { resource: { namespace, path: [...under.path], owner } }))).toBe('path_refused');
      expect(under.seen()).toEqual(before);
    });

    it('gives nobody what is of another owner or another namespace', async () => {
      for (const action of actions()) {
        const result = await ask(action, { resource: { namespace: under.plane.namespace, path: [...under.path], owner: other } });
        expect(JSON.stringify(result), action).not.toContain('maren');
      }
      const theirs = join(under.root, ...ownerFolder('north', other));
      for (const segment of under.path) expect(existsSync(join(theirs, segment, '.git'))).toBe(false);
    });

    it('goes through no link in the place of the owner, and says nothing of where it leads', async () => {
      const folder = join(under.root, ...ownerFolder('north', other));
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(dirname(folder), { recursive: true });
      symlinkSync(join(under.root, ...ownerFolder('north', owner)), folder);
      const before = under.seen();
      for (const action of actions().filter((each) => each !== 'snapshot:list')) {
        const result = await ask(action, { resource: { namespace: under.plane.namespace, path: [...under.path], owner: other } });
        expect(result.status === 'failed' && result.error.code, action).toBe('path_not_confined');
        expect(JSON.stringify(result)).not.toContain(under.root);
      }
      expect(under.seen()).toEqual(before);
    });

    it('does nothing for whoever has gone already', async () => {
      const before = under.seen();
      for (const action of actions()) expect(await codeOf(ask(action, {}, AbortSignal.abort()))).toBe('operation_cancelled');
      expect(under.seen()).toEqual(before);
    });
  });
};
