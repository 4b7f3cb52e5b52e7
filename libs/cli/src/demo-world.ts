import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrokerPrincipal } from '@sharedos/bus';
import { type Address, addressId, encodeToken } from '@sharedos/contracts';

/** The people and the agent of a first use: alice owns the files, scout works for her, the auditor looks on. */
export const ALICE = { kind: 'human', userId: 'alice' } as const satisfies Address;
export const BOB = { kind: 'human', userId: 'bob' } as const satisfies Address;
export const AUDITOR = { kind: 'human', userId: 'auditor' } as const satisfies Address;
export const SCOUT = { kind: 'agent', agentId: 'scout' } as const satisfies Address;

export const DEMO_NAMESPACE = 'demo';

export const demoPrincipals = (namespaceId: string): readonly BrokerPrincipal[] => [
  { namespaceId, principal: ALICE },
  { namespaceId, principal: SCOUT },
  { namespaceId, principal: BOB },
  { namespaceId, principal: AUDITOR, auditor: true },
];

export const SAMPLE_FILES: Readonly<Record<string, string>> = {
  'notes/plan.md': '# Plan\n\n- Buy milk\n- Write to Bob about the garden\n',
  'notes/log.md': 'What was done, a line each.\n',
  'notes/ideas/garden.md': 'A pond with frogs. Ask Bob for stones.\n',
  'private/diary.md': 'Nobody but me reads this.\n',
};

/** Where an owner's files lie under the root of the `files` tools. */
export const filesFolder = (filesRoot: string, namespaceId: string, owner: Address): string =>
  join(filesRoot, encodeToken(namespaceId), owner.kind, encodeToken(addressId(owner)));

/** Gives alice something to work with, unless there is something already. */
export const writeSampleFiles = async (filesRoot: string, namespaceId: string): Promise<void> => {
  const folder = filesFolder(filesRoot, namespaceId, ALICE);
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) return;
  for (const [path, text] of Object.entries(SAMPLE_FILES)) {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), text);
  }
};
