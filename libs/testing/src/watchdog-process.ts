import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';

// Run as a process of its own by `watchdog.ts`. It hears over its standard input what to guard; when that closes, whoever spoke is
// gone, however it went, and what it left behind is removed.
const guarded = new Set<string>();

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  if (line.startsWith('+')) guarded.add(line.slice(1));
  else guarded.delete(line.slice(1));
});
lines.on('close', () => {
  const targets = [...guarded];
  for (const target of targets.filter((each) => each.startsWith('process '))) {
    try {
      // The whole group: each guarded process leads one.
      process.kill(-Number(target.slice('process '.length)), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  for (const target of targets.filter((each) => each.startsWith('folder '))) {
    rmSync(target.slice('folder '.length), { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
