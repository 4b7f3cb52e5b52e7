import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startServiceProcess } from './service-process.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
const start = (program: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'sharedos-service-'));
  folders.push(folder);
  const main = join(folder, 'main.mjs');
  writeFileSync(main, program);
  return startServiceProcess({ name: 'authorizer', instance: '1', main, cwd: folder, env: {} });
};

describe('starting a service', () => {
  it('waits for the line that says it is ready', async () => {
    const service = await start(
      `console.log('loading'); setTimeout(() => console.log('{"event":"ready"}'), 50); setInterval(() => {}, 1000);`,
    );
    expect(service.output()).toBe('loading\n{"event":"ready"}');
    expect(await service.stop()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(service.running()).toBe(false);
  });
  it('is refused, with its one line, when it ends before', () =>
    expect(start(`console.error('SHAREDOS_TOKEN_SECRET is missing'); process.exit(1);`)).rejects.toThrow(
      /authorizer\/1 ended before.*\nSHAREDOS_TOKEN_SECRET is missing/,
    ));
  it.each(['ready', '{"event":"ready"', '{"event":"listening"}', '["ready"]'])('does not take %s for that line', (line) =>
    expect(start(`console.log(${JSON.stringify(line)});`)).rejects.toThrow(/ended before/),
  );
});
