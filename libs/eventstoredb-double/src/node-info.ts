import type { ServiceDefinition, handleUnaryCall } from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import { STREAMS, uuidAs } from './wire.ts';

const VERSION = '23.10.0';
const [FOLLOWER, LEADER] = [6, 8];

/** `ServerFeatures.GetSupportedMethods`: the first thing that a client asks. */
export const supportedMethodsHandler =
  (faults: Faults, batchAppend: boolean): handleUnaryCall<object, object> =>
  (_call, answer) =>
    void faults.serving.passed().then(() =>
      answer(null, {
        eventStoreServerVersion: VERSION,
        methods: namesOf(STREAMS)
          .filter((name) => batchAppend || name !== 'BatchAppend')
          .map((name) => ({ methodName: name.toLowerCase(), serviceName: 'event_store.client.streams.streams', features: [] })),
      }),
    );

const namesOf = (service: ServiceDefinition): readonly string[] => Object.keys(service);

/** `Gossip.Read`: this one node, the leader unless the faults say otherwise, and then also the leader. */
export const membersHandler =
  (faults: Faults, self: () => { readonly host: string; readonly port: number }): handleUnaryCall<object, object> =>
  (_call, answer) =>
    void faults.serving.passed().then(() => {
      const elsewhere = faults.leaderElsewhere;
      const member = (state: number, { host, port }: { readonly host: string; readonly port: number }) => ({
        instanceId: uuidAs(crypto.randomUUID(), 'string'),
        timeStamp: String(Date.now()),
        state,
        isAlive: true,
        httpEndPoint: { address: host, port },
      });
      const leader = typeof elsewhere === 'object' ? [member(LEADER, elsewhere)] : [];
      answer(null, { members: [member(elsewhere === undefined ? LEADER : FOLLOWER, self()), ...leader] });
    });
