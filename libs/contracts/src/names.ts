import { type Result, err, ok } from './result.ts';

const PLAIN = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Writes one identifier as one token that is safe in a NATS subject, a stream name, a Redis key, a folder name and a SQL key.
 *
 * A token of `[A-Za-z0-9_-]{1,128}` stands for itself; anything else becomes `~` + base64url of its UTF-8 bytes. The encoding
 * is injective, so components joined with a separator outside the alphabet can never be confused: `a`+`b.c` differs from
 * `a.b`+`c`. This is the only place where a name is made from an identifier.
 *
 * @throws RangeError on a lone surrogate: two such strings would share one UTF-8 form. Parse with `NameId` first.
 */
export const encodeToken = (id: string): string => {
  if (PLAIN.test(id)) return id;
  if (!id.isWellFormed()) throw new RangeError('an identifier with a lone surrogate has no name');
  return `~${Buffer.from(id, 'utf8').toString('base64url')}`;
};

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a token back, accepting only the one spelling that {@link encodeToken} would have written. A literal `>` or `*`, which
 * a wildcard permission lets through, is refused here.
 */
export const decodeToken = (token: string): Result<string, 'not_a_token'> => {
  if (PLAIN.test(token)) return ok(token);
  if (!token.startsWith('~') || token.length > 2048) return err('not_a_token');
  try {
    const id = utf8.decode(Buffer.from(token.slice(1), 'base64url'));
    return encodeToken(id) === token ? ok(id) : err('not_a_token');
  } catch {
    return err('not_a_token');
  }
};

/** Joins identifiers into one name, each encoded by itself. */
export const encodeName = (...ids: readonly string[]): string => ids.map(encodeToken).join('.');
