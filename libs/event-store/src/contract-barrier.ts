import { describe, expect, it } from 'vitest';
import { appendSurely, barrierOf, eventsOf, listen, newStream } from './contract-words.ts';
import type { UnderTest } from './contract-world.ts';

export const barrierContract = (under: UnderTest): unknown =>
  describe('the barrier', () => {
    it('is at or above every append acknowledged before, by any client', async () => {
      const other = await under.world.open();
      let acknowledged = 0;
      const writer = async () => {
        for (let count = 0; count < 50; count += 1)
          acknowledged = Math.max(acknowledged, (await appendSurely(under.store, newStream(), 0, eventsOf('a'))).position);
      };
      const asker = async () => {
        for (let count = 0; count < 50; count += 1) {
          const before = acknowledged;
          expect(await barrierOf(other)).toBeGreaterThanOrEqual(before);
        }
      };
      await Promise.all([writer(), writer(), ...Array.from({ length: 8 }, asker)]);
      await other.close();
    });

    it('is reached by a subscription', async () => {
      await appendSurely(under.store, newStream(), 0, eventsOf('a'));
      const heard = listen(under.store, 0);
      await heard.untilReached(await barrierOf(under.store));
      await heard.close();
    });
  });
