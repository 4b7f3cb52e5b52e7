import { generateKeyPairSync } from 'node:crypto';
import type { AuditEvent } from '@sharedos/contracts';
import { RecordStore } from './record-store.ts';
import { SealKeys } from './seal-keys.ts';

export const NOON = '2026-01-01T12:00:00.000Z';
export const alice = { kind: 'human', userId: 'alice' } as const;

/** A record of the namespace `w1`, unless told otherwise. */
export const recordOf = (id: string, over: Partial<AuditEvent> = {}): AuditEvent => ({
  version: '1',
  id,
  type: 'tool.invoked',
  outcome: 'succeeded',
  at: NOON,
  traceId: 'trace-1',
  namespaceId: 'w1',
  actor: alice,
  authority: alice,
  owner: alice,
  purpose: 'p1',
  ...over,
});

export const recordStore = (
  recordsMax = 1_000,
  path = ':memory:',
  streamId = 'stream-1',
  recordsMaxOf: ReadonlyMap<string, number> = new Map(),
): RecordStore => new RecordStore(path, { streamId, recordsMax, recordsMaxOf });

/** Folds records at the sequences 1, 2, 3, … after where the store stands. */
export const fold = (store: RecordStore, ...events: readonly AuditEvent[]): void => {
  const from = store.position;
  store.append(
    events.map((event, index) => ({ sequence: from + index + 1, event })),
    from + events.length,
  );
};

export const newSealKey = (keyId: string) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    private: { keyId, der: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64url') },
    public: { keyId, der: publicKey.export({ format: 'der', type: 'spki' }).toString('base64url') },
  };
};
export const sealKeys = (): SealKeys => new SealKeys([newSealKey('key-1').private]);
