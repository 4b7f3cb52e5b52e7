import { type Bus, type BrokerPrincipal, connectBus } from '@sharedos/bus';
import { type Address, type ServiceName, SERVICE_NAMES, addressId } from '@sharedos/contracts';
import type { LocalStack } from '@sharedos/testing';
import { ALICE, BOB, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

export { ALICE, BOB, NAMESPACE, SCOUT };
/** Whose only grant over files is a bounded one. */
export const CAROL = { kind: 'human', userId: 'carol' } as const satisfies Address;

/** The file that every call asks about. */
export const FILE = { path: ['bench', 'small.txt'] };
export const TOOL = 'files.stat';
const USES_MAX = 1_000_000_000;

const PRINCIPALS: readonly BrokerPrincipal[] = [ALICE, BOB, CAROL].map((principal) => ({ namespaceId: NAMESPACE, principal }));

/** The real system with one process of each service, and our own connections beside it. */
export interface BenchSystem {
  readonly system: TestSystem;
  readonly stack: LocalStack;
  /** Connected with the rights of the tool-executor: what it may ask and write, and no more. */
  readonly bus: Bus;
  /** Connected with the rights of the authorizer, for the barrier of the log. */
  readonly authorizerBus: Bus;
  /** A connection of one principal. */
  listen(principal: Address): Promise<Bus>;
  stop(): Promise<void>;
}

/** @param cpuProfiles A folder to which the services write V8 profiles when they stop. */
export const startBenchSystem = async (say: (line: string) => void, cpuProfiles?: string): Promise<BenchSystem> => {
  const profiled = cpuProfiles === undefined ? {} : { env: () => ({ NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${cpuProfiles}` }) };
  const system = await startTestSystem({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, onProgress: say, ...profiled });
  const { stack } = system;
  const buses: Bus[] = [];
  const stop = async (): Promise<void> => {
    for (const bus of buses) await bus.close();
    await system.stop();
  };
  const connected = async (connecting: Promise<Bus>): Promise<Bus> => {
    const bus = await connecting;
    buses.push(bus);
    return bus;
  };
  const as = (credentials: { user: string; password: string; inboxPrefix: string }, name: string): Promise<Bus> =>
    connected(
      connectBus({
        servers: stack.natsUrl,
        user: credentials.user,
        pass: credentials.password,
        inboxPrefix: credentials.inboxPrefix,
        name,
      }),
    );
  const asService = (name: ServiceName): Promise<Bus> => as(stack.credentials.service(name), `bench/${name}`);
  try {
    for (const owner of [ALICE, BOB, CAROL]) {
      const id = addressId(owner);
      await system.files(owner, { 'bench/small.txt': 'Buy milk' });
      const runScout = { namespace: 'sharedos.execution', path: ['agent', 'scout'], actions: ['invoke'], scope: 'exact' } as const;
      await system.grant(`${id}-run`, runScout, { from: owner });
      const constraints = owner === CAROL ? { constraints: { maxUses: USES_MAX } } : {};
      await system.grant(`${id}-stat`, { path: ['bench'], actions: ['stat'] }, { from: owner, ...constraints });
    }
    return {
      system,
      stack,
      bus: await asService('tool-executor'),
      authorizerBus: await asService('authorizer'),
      listen: (principal) => as(stack.credentials.principal(NAMESPACE, principal), 'bench/listener'),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};

export const SERVICES: readonly ServiceName[] = SERVICE_NAMES;
