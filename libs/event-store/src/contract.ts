import { afterAll, beforeAll, describe } from 'vitest';
import { appendingContract } from './contract-appending.ts';
import { barrierContract } from './contract-barrier.ts';
import { failingContract } from './contract-failing.ts';
import { namesContract } from './contract-names.ts';
import { subscribingContract } from './contract-subscribing.ts';
import type { EventStoreWorld, UnderTest } from './contract-world.ts';
import type { EventStore } from './event-store.ts';

export type { EventStoreWorld };

/** The rules of the port, for every adapter. Names of the world are of one history; each test writes streams of its own. */
export const eventStoreContract = (adapter: string, begin: () => Promise<EventStoreWorld>): unknown =>
  describe(`${adapter} as an event store`, () => {
    let world: EventStoreWorld;
    let store: EventStore;
    const under: UnderTest = {
      get world() {
        return world;
      },
      get store() {
        return store;
      },
    };
    beforeAll(async () => {
      world = await begin();
      store = await world.open();
    });
    afterAll(async () => {
      world?.resume();
      world?.hear();
      await store?.close();
      await world?.close();
    });

    appendingContract(under);
    namesContract(under);
    subscribingContract(under);
    barrierContract(under);
    failingContract(under);
  });
