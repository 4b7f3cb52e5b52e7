import { hash } from 'node:crypto';
import { canonicalJson } from '@sharedos/contracts';

/** Namespace of the ids of this log; a random UUID that never changes. */
const LOG_EVENTS = '6f1c1f0e-58ab-4b1e-9b0a-3a1d6f0c9d42';

/** What makes an event of a command the same event when the command is sent again. */
export interface EventIdParts {
  readonly namespaceId: string;
  /** The authenticated principal as one text, such as `addressKey` writes it. */
  readonly principal: string;
  /** The command's verb, so that one command id used for two verbs names two commands. */
  readonly verb: string;
  readonly commandId: string;
  /** Which of the command's events, from 0. */
  readonly index: number;
}

/**
 * Id of the `index`-th event of a command: the same for every retry, so that a retry is recognised in the stream.
 *
 * Principal and namespace are part of it, so nobody can pick a command id that makes another's command look done.
 */
export const eventIdOf = ({ namespaceId, principal, verb, commandId, index }: EventIdParts): string =>
  uuidV5(LOG_EVENTS, canonicalJson([namespaceId, principal, verb, commandId, index]));

/** The name-based UUID of RFC 9562 §5.5: SHA-1 of the namespace's bytes and the UTF-8 name. */
export const uuidV5 = (namespace: string, name: string): string => {
  const bytes = hash(
    'sha1',
    Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name, 'utf8')]),
    'buffer',
  ).subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
};
