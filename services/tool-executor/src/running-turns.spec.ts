import { describe, expect, it } from 'vitest';
import { controlExecution } from './control-execution.ts';
import { RunningTurns } from './running-turns.ts';

describe('the turns that a process owns', () => {
  it('are those it began and has not ended', () => {
    const running = new RunningTurns();
    expect(running.has('turn-1')).toBe(false);
    running.begin({ turnId: 'turn-1', cancel: () => undefined });
    expect(running.has('turn-1')).toBe(true);
    running.end('turn-1');
    expect(running.has('turn-1')).toBe(false);
  });

  it('are answered for, and stopped one by one, when another process asks', async () => {
    const running = new RunningTurns();
    const cancelled: string[] = [];
    for (const turnId of ['turn-1', 'turn-2']) running.begin({ turnId, cancel: () => void cancelled.push(turnId) });
    const control = controlExecution({ running } as never);
    expect(await control({ turnId: 'turn-1', ask: 'alive' })).toEqual({ ok: true, value: { running: true } });
    expect(cancelled).toEqual([]);
    expect(await control({ turnId: 'turn-1', ask: 'cancel' })).toEqual({ ok: true, value: { running: true } });
    expect(await control({ turnId: 'turn-3', ask: 'cancel' })).toEqual({ ok: true, value: { running: false } });
    expect(await control({ turnId: 'turn-3', ask: 'alive' })).toEqual({ ok: true, value: { running: false } });
    expect(cancelled).toEqual(['turn-1']);
  });
});
