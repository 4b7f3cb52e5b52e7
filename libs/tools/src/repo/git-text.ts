import { type AccessContext, type Instant, addressId, encodeToken, timestampOf } from '@sharedos/contracts';
import type { Head } from './git-folder.ts';
import type { Change } from './repo-index.ts';
import type { RepoLogOutput } from './repo-schemas.ts';

const MESSAGE_MAX = 10_000;

export const isWithin = (path: string, spec: string): boolean => path === spec || path.startsWith(`${spec}/`);

export const named = ({ ref }: Head): { readonly branch?: string } =>
  ref === undefined ? {} : { branch: ref.slice('refs/heads/'.length) };

/** `:modes hashes letter NUL path NUL` of each change. */
export const stagedIn = (raw: string): readonly { readonly path: string; readonly change: Change }[] => {
  const parts = raw.split('\0');
  const changes: { path: string; change: Change }[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const letter = parts[at]?.at(-1);
    if (letter !== 'U')
      changes.push({ path: parts[at + 1] ?? '', change: letter === 'A' ? 'added' : letter === 'D' ? 'deleted' : 'modified' });
  }
  return changes;
};

export const commitOf = (record: string): RepoLogOutput['commits'][number] => {
  const [commit = '', parents = '', name = '', email = '', authored = '', committed = '', ...message] = record.split('\n');
  return {
    commit,
    parents: parents.split(' ').filter((parent) => parent !== ''),
    author: { name, email },
    authoredAt: timestampOf(Number(authored) * 1_000),
    committedAt: timestampOf(Number(committed) * 1_000),
    message: message.join('\n').trimEnd().slice(0, MESSAGE_MAX),
  };
};

/** Who acts, by kind and id; nothing that somebody else wrote. */
export const identity = ({ actor, namespaceId }: AccessContext, at: Instant): Readonly<Record<string, string>> => {
  const id = addressId(actor);
  // oxlint-disable-next-line no-control-regex -- what Git would take for an end of the name
  const plain = id.replace(/[\u0000-\u001f\u007f<>]/g, '?');
  const name = `${actor.kind}:${plain}`;
  const email = `${encodeToken(id)}@${actor.kind}.${encodeToken(namespaceId)}.sharedos.invalid`;
  const date = `@${Math.floor(at / 1_000)} +0000`;
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    GIT_COMMITTER_DATE: date,
  };
};
