import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runGit } from './git-process.ts';
import { repoError } from './repo-refusal.ts';

let at: string;
beforeEach(() => {
  at = realpathSync(mkdtempSync(join(tmpdir(), 'git-process-')));
});
afterEach(() => rmSync(at, { recursive: true, force: true }));

const run = (args: readonly string[], options: Parameters<typeof runGit>[3] = {}, cancel: AbortSignal = new AbortController().signal) =>
  runGit({ gitFolder: at, workTree: at, index: join(at, 'index'), newObjects: at, objects: at }, args, cancel, options);

describe('one run of git', () => {
  it('is answered with what it printed', async () => {
    expect(String(((await run(['--version'])) as { value: Buffer }).value)).toMatch(/^git version/);
  });

  it('that fails says so, and nothing of why: what git prints may hold paths of the host', async () => {
    expect(await run(['no-such-subcommand'])).toEqual({ ok: false, error: 'git_failed' });
    expect(repoError('git_failed')).toEqual({ code: 'git_failed', message: 'git did not do what it was asked to', retryable: false });
  });

  it('without a git says that there is none', async () => {
    expect(await run(['--version'], { env: { PATH: at } })).toEqual({ ok: false, error: 'git_unavailable' });
    expect(repoError('git_unavailable')).toMatchObject({ retryable: true });
  });

  it('is bounded in what it may print', async () => {
    expect(await run(['--version'], { outputMax: 5 })).toEqual({ ok: false, error: 'repo_too_large' });
    expect(((await run(['--version'], { outputMax: 3, cut: true })) as { value: Buffer }).value.length).toBe(4);
  });

  it('ends when nobody waits any more', async () => {
    const cancel = new AbortController();
    const waiting = run(['hash-object', '--stdin'], {}, cancel.signal);
    cancel.abort();
    expect(await waiting).toEqual({ ok: false, error: 'operation_cancelled' });
    expect(await run(['--version'], {}, AbortSignal.abort())).toEqual({ ok: false, error: 'operation_cancelled' });
  });
});
