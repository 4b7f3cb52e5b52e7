// A harness that is driven: it reads a frame a line and prints a frame a line. It reads one file and says what was in it.
import { createInterface } from 'node:readline';

interface Told {
  readonly type: string;
  readonly prompt?: string;
  readonly result?: { readonly status: string; readonly output?: unknown };
}

const say = (frame: object): void => void process.stdout.write(`${JSON.stringify(frame)}\n`);
process.stdout.write('hello\n');
for await (const line of createInterface({ input: process.stdin })) {
  const told = JSON.parse(line) as Told;
  if (told.type === 'start') {
    say({ type: 'thinking' });
    say({ type: 'tool_call', id: 'mine-1', name: 'files_read', arguments: JSON.stringify({ path: [told.prompt] }) });
  } else {
    say({ type: 'complete', output: { heard: told.result?.output ?? told.result?.status } });
  }
}
