import { randomUUID } from 'node:crypto';
import { AuthorityClient } from '@sharedos/bus';
import { type Address, type AuthorityQuestion, type Verdict, hashOf } from '@sharedos/contracts';
import { jetStreamEventStore } from '@sharedos/event-store';
import type { BenchSystem } from './bench-system.ts';
import { benchCall, benchRegistry, contextOf, handlerOf } from './executor-turn.ts';
import { TOOL } from './bench-system.ts';

/** The authorizer, asked directly with the rights of the tool-executor. */
export interface Authority {
  /** Opens the authority of one more turn. */
  open(): Promise<void>;
  /** Decides one call of a turn that is open already. */
  decide(): Promise<Verdict>;
  /** The barrier alone, as the authorizer asks for it. */
  barrier(): Promise<void>;
  /** Bytes of the bodies of one decision. */
  bytes(): Promise<{ readonly request: number; readonly reply: number }>;
  close(): Promise<void>;
}

const DEADLINE_MS = 5_000;
const VALID_MS = 600_000;

export const askAuthority = async ({ bus, authorizerBus, stack }: BenchSystem, owner: Address): Promise<Authority> => {
  const client = new AuthorityClient(bus, DEADLINE_MS);
  const context = contextOf(owner);
  const opening = async () => {
    const opened = await client.open({ turnId: randomUUID(), context, validForMs: VALID_MS, auditId: randomUUID() });
    if (!opened.ok || opened.value.status !== 'resolved') throw new Error('a turn was not opened');
    return opened.value;
  };
  const store = await jetStreamEventStore({ bus: authorizerBus });
  if (!store.ok) throw new Error(store.error.reason);

  const { token } = await opening();
  const handler = handlerOf(benchRegistry(stack.filesRoot), TOOL);
  const { requiredCapability: ceiling } = handler.definition;
  const requirement = handler.resolveRequirement?.(context, benchCall(context, TOOL, 'call')) ?? ceiling;
  const question = (): AuthorityQuestion => ({
    kind: 'tool',
    ceiling,
    exact: { requirement },
    operation: hashOf({ of: randomUUID() }),
    operationId: 'call',
  });
  const decide = async (): Promise<Verdict> => {
    const verdict = await client.decide(token, context, question(), [randomUUID(), randomUUID()]);
    if (!verdict.ok || verdict.value.status !== 'allowed') throw new Error('a decision did not allow');
    return verdict.value;
  };
  return {
    open: async () => void (await opening()),
    decide,
    barrier: async () => {
      const barrier = await store.value.barrier(DEADLINE_MS);
      if (!barrier.ok) throw new Error(barrier.error.reason);
    },
    bytes: async () => ({
      request: bytesOf({ token, context, question: question(), auditIds: [randomUUID(), randomUUID()] }),
      reply: bytesOf({ ok: true, value: await decide() }),
    }),
    close: () => store.value.close(),
  };
};

const bytesOf = (body: unknown): number => Buffer.byteLength(JSON.stringify(body));
