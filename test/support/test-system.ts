import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BrokerPrincipal } from '@sharedos/bus';
import { type NewTurn, type SharedOS, type TurnAnswer, connectSharedOS, newTurn } from '@sharedos/client';
import {
  type Address,
  type AuditEvent,
  type AuditRecord,
  type CapabilityConstraints,
  SERVICE_NAMES,
  type ServiceName,
  addressKey,
} from '@sharedos/contracts';
import { type LocalStack, type LocalStackOptions, type ServiceProcess, startLocalStack } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';

export const NAMESPACE = 'demo';
export const ALICE = { kind: 'human', userId: 'alice' } as const satisfies Address;
export const BOB = { kind: 'human', userId: 'bob' } as const satisfies Address;
export const SCOUT = { kind: 'agent', agentId: 'scout' } as const satisfies Address;
export const AUDITOR = { kind: 'human', userId: 'auditor' } as const satisfies Address;

export const PRINCIPALS: readonly BrokerPrincipal[] = [
  { namespaceId: NAMESPACE, principal: ALICE },
  { namespaceId: NAMESPACE, principal: BOB },
  { namespaceId: NAMESPACE, principal: SCOUT },
  { namespaceId: NAMESPACE, principal: AUDITOR, auditor: true },
];

export interface TestSystemOptions extends Partial<LocalStackOptions> {
  /** Processes of each service; one each when absent. */
  readonly replicas?: Partial<Record<ServiceName, number>>;
  /** Environment of one process, by service and number from 0. */
  readonly env?: (service: ServiceName, replica: number) => Readonly<Record<string, string>>;
}

/** What a capability of a grant names, in one line of a test. */
export interface Right {
  readonly namespace?: string;
  readonly path: readonly string[];
  readonly actions: readonly string[];
  readonly scope?: 'exact' | 'descendants';
}

/** The whole system as real processes, and short words for what tests do with it. */
export interface TestSystem {
  readonly stack: LocalStack;
  readonly services: Readonly<Record<ServiceName, readonly ServiceProcess[]>>;
  /** A client for a principal; the same one each time. */
  client(principal: Address, namespaceId?: string): Promise<SharedOS>;
  /** Issues a root grant from alice to scout, or as said. Fails the test when refused. */
  grant(
    id: string,
    right: Right,
    options?: { readonly from?: Address; readonly to?: Address; readonly constraints?: CapabilityConstraints },
  ): Promise<void>;
  /** Lets alice start turns of scout. */
  letAliceRunScout(): Promise<void>;
  /** Runs one turn of scout for alice, or as said, and returns its answer. Fails the test when there is none. */
  run(turn: Partial<NewTurn> & Pick<NewTurn, 'calls'>): Promise<TurnAnswer>;
  /** Writes files below the owner's folder. */
  files(owner: Address, files: Readonly<Record<string, string>>): Promise<string>;
  /** All audit records of a trace, as the auditor reads them; waits until `enough` is satisfied. */
  records(traceId: string, enough?: (records: readonly AuditEvent[]) => boolean): Promise<readonly AuditEvent[]>;
  stop(): Promise<void>;
}

const RECORDS_DEADLINE_MS = 10_000;

export const startTestSystem = async (options: TestSystemOptions = {}): Promise<TestSystem> => {
  const { replicas = {}, env, ...stackOptions } = options;
  const stack = await startLocalStack({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, ...stackOptions });
  const clients = new Map<string, Promise<SharedOS>>();
  const stop = async (): Promise<void> => {
    for (const client of clients.values()) await client.then((connected) => connected.close()).catch(() => undefined);
    await stack.stop();
  };
  try {
    const started = await Promise.all(
      SERVICE_NAMES.map(async (name) => {
        const processes = Array.from({ length: replicas[name] ?? 1 }, (_, index) =>
          stack.startService(name, { env: env?.(name, index) ?? {} }),
        );
        return [name, await Promise.all(processes)] as const;
      }),
    );
    const services = Object.fromEntries(started) as unknown as TestSystem['services'];

    const client: TestSystem['client'] = (principal, namespaceId = NAMESPACE) => {
      const key = `${namespaceId} ${addressKey(principal)}`;
      const known = clients.get(key);
      if (known !== undefined) return known;
      const { user, password } = stack.credentials.principal(namespaceId, principal);
      const connecting = connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal });
      clients.set(key, connecting);
      return connecting;
    };

    const grant: TestSystem['grant'] = async (id, right, { from = ALICE, to = SCOUT, constraints } = {}) => {
      const capability = {
        resource: { namespace: right.namespace ?? 'files', path: [...right.path] },
        actions: [...right.actions],
        scope: right.scope ?? 'descendants',
      };
      const issued = await (
        await client(from)
      ).grants.issue({ id, subject: to, capabilities: [capability], ...(constraints === undefined ? {} : { constraints }) });
      if (!issued.ok) throw new Error(`the grant ${id} was not issued: ${JSON.stringify(issued.error)}`);
    };

    return {
      stack,
      services,
      client,
      grant,
      letAliceRunScout: () =>
        grant('run-scout', { namespace: 'sharedos.execution', path: ['agent', 'scout'], actions: ['invoke'], scope: 'exact' }),
      run: async (turn) => {
        const from = turn.from ?? ALICE;
        const request = newTurn({ from, agent: SCOUT, purpose: 'testing', ...turn });
        const submitted = await (await client(from)).turns.submit(request);
        if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
        const answer = await submitted.value.result;
        if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
        return answer.value;
      },
      files: async (owner, files) => {
        const folder = join(stack.filesRoot, ...ownerFolder(NAMESPACE, owner));
        await mkdir(folder, { recursive: true });
        for (const [path, text] of Object.entries(files)) {
          await mkdir(dirname(join(folder, path)), { recursive: true });
          await writeFile(join(folder, path), text);
        }
        return folder;
      },
      records: async (traceId, enough = () => true) => {
        const auditor = await client(AUDITOR);
        const deadline = performance.now() + RECORDS_DEADLINE_MS;
        for (;;) {
          const found = await auditor.records.query({ traceId, limit: 500 });
          const records = found.ok ? found.value.records.map(({ event }: AuditRecord) => event) : [];
          if (found.ok && enough(records)) return records;
          if (performance.now() > deadline)
            throw new Error(`the records of ${traceId} did not come: ${JSON.stringify(found.ok ? records : found.error)}`);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};
