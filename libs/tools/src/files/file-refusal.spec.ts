import { describe, expect, it } from 'vitest';
import { FILE_REFUSALS, type FileRefusal, attempt, fileError } from './file-refusal.ts';

const failing = (code: string) => attempt(() => Promise.reject(Object.assign(new Error(`${code}: /srv/secret/path`), { code })));

describe('an error of the file system', () => {
  it.each<[string, FileRefusal]>([
    ['ENOENT', 'file_not_found'],
    ['ENOTDIR', 'not_a_directory'],
    ['EISDIR', 'not_a_file'],
    ['EEXIST', 'file_exists'],
    ['ENOTEMPTY', 'folder_not_empty'],
    ['ELOOP', 'path_not_confined'],
    ['ENAMETOOLONG', 'path_refused'],
    ['EILSEQ', 'path_refused'],
    ['EINVAL', 'path_refused'],
    ['EACCES', 'file_not_accessible'],
    ['EPERM', 'file_not_accessible'],
    ['EROFS', 'file_not_accessible'],
    ['EIO', 'files_unavailable'],
    ['EMFILE', 'files_unavailable'],
  ])('%s is refused as %s', async (code, refusal) => expect(await failing(code)).toEqual({ ok: false, error: refusal }));
  it('that has no code is a defect, and goes on', () =>
    expect(attempt(() => Promise.reject(new TypeError('ours')))).rejects.toThrow(TypeError));
  it('says nothing of where it happened', () => {
    for (const code of Object.keys(FILE_REFUSALS) as FileRefusal[]) expect(fileError(code).message).not.toMatch(/[/\\]/);
  });
  it('may be tried again only where another try could succeed', () => {
    const retryable = (Object.keys(FILE_REFUSALS) as FileRefusal[]).filter((code) => fileError(code).retryable);
    expect(retryable).toEqual(['search_timed_out', 'file_busy', 'files_unavailable']);
  });
});
