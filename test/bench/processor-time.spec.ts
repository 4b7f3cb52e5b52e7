import { describe, expect, it } from 'vitest';
import { processorMs, ticksOf } from './processor-time.ts';

describe('the processor time of a process', () => {
  it('is user and kernel time together, whatever the process is called', () =>
    expect(ticksOf('42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 300 45 7 8 20 0 1 0 1000 1 1')).toBe(345));
  it('is not a number for a process that is not there', async () => expect(await processorMs(2 ** 30)).toBeNaN());
});
