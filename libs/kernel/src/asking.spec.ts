import { describe, expect, it } from 'vitest';
import { type Answer, type Asking, type UseAnswer, askAncestor, askUse, decideSync, decideWith } from './asking.ts';
import { Defect } from './decider.ts';

const use = { namespaceId: 'w1', grantId: 'g', max: 1, consume: true };
const ancestor = { namespaceId: 'w1', grantId: 'p' };
function* both(): Asking<readonly Answer[]> {
  return [yield* askUse(use), yield* askAncestor(ancestor)];
}

describe('a rule that asks', () => {
  const world = { use: () => 'granted' as const, ancestor: () => 'not_found' as const };
  it('is answered at once', () => expect(decideSync(both(), world)).toEqual(['granted', 'not_found']));
  it('is answered later, one question at a time', async () => {
    const order: string[] = [];
    const later = async <T>(name: string, answer: T): Promise<T> => {
      order.push(`${name} asked`);
      await Promise.resolve();
      order.push(`${name} answered`);
      return answer;
    };
    const answers = await decideWith(both(), { use: () => later('use', 'granted'), ancestor: () => later('ancestor', 'not_found') });
    expect(answers).toEqual(['granted', 'not_found']);
    expect(order).toEqual(['use asked', 'use answered', 'ancestor asked', 'ancestor answered']);
  });
  it('hears that a port is not installed', async () => {
    expect(decideSync(both(), {})).toEqual(['missing_port', 'missing_port']);
    expect(await decideWith(both(), {})).toEqual(['missing_port', 'missing_port']);
  });
  it('stops on an answer that is none', () => {
    const mute = { use: (): UseAnswer => 'not_found' as unknown as UseAnswer };
    expect(() => decideSync(both(), mute)).toThrow(Defect);
  });
});
