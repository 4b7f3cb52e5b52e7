import { z } from 'zod';
import { ProtocolError } from '../errors.ts';
import { parseJsonText } from '../json-text.ts';
import { type Result, err, ok } from '../result.ts';

/**
 * One kind of body on the wire: a strict schema under a released name. The name travels in the `sharedos-schema` header; a
 * released schema never changes, a new shape is a new version.
 */
export interface WireMessage<T> {
  readonly name: string;
  readonly schema: z.ZodType<T>;
}

export const wireMessage = <Schema extends z.core.$ZodType>(name: string, schema: Schema): WireMessage<z.output<Schema>> => ({
  name,
  schema: schema as unknown as z.ZodType<z.output<Schema>>,
});

/** The answer to a request: a value, or a typed refusal. */
export type Reply<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ProtocolError };

/** A typed refusal. Callers act on the code; the text is for people and carries nothing of anybody's data. */
export const refused = (code: string, message: string, retryable = false) => ({ ok: false, error: { code, message, retryable } }) as const;

export const replyMessage = <Schema extends z.core.$ZodType>(name: string, value: Schema): WireMessage<Reply<z.output<Schema>>> =>
  wireMessage(
    name,
    z.discriminatedUnion('ok', [
      z.strictObject({ ok: z.literal(true), value }),
      z.strictObject({ ok: z.literal(false), error: ProtocolError }),
    ]) as unknown as z.ZodType<Reply<z.output<Schema>>>,
  );

export const SCHEMA_HEADER = 'sharedos-schema';

/** Largest body of a principal's request, in bytes. */
export const REQUEST_BYTES_MAX = 64 * 1024;
/** Largest tool result, in bytes of its JSON; larger content goes by reference. */
export const RESULT_BYTES_MAX = 4 * 1024 * 1024;
/** Largest message of the broker. */
export const PAYLOAD_BYTES_MAX = 8 * 1024 * 1024;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a body from outside once, at the edge. Afterwards the type is trusted.
 *
 * @returns The value, or `invalid_request` with the first few places that were wrong: names of fields and rules, never the
 *   values found there.
 */
export const decodeBody = <T>(message: WireMessage<T>, body: Uint8Array, bytesMax: number = REQUEST_BYTES_MAX): Result<T, ProtocolError> =>
  decoded(message, body, bytesMax, parseJsonText);

/**
 * Parses a body that a service of ours wrote, on a subject where the broker lets nobody else write. The schema is held as
 * strictly; only the scan of the text is left out, since `JSON.stringify` writes no member twice and it costs more than the
 * parsing itself. JSON bags are held to their depth and their keys by their own schema.
 */
export const decodeOwnBody = <T>(
  message: WireMessage<T>,
  body: Uint8Array,
  bytesMax: number = PAYLOAD_BYTES_MAX,
): Result<T, ProtocolError> => decoded(message, body, bytesMax, parseOwnText);

const parseOwnText = (text: string): Result<unknown, string> => {
  try {
    return ok(JSON.parse(text));
  } catch {
    return err('is not JSON');
  }
};

const decoded = <T>(
  message: WireMessage<T>,
  body: Uint8Array,
  bytesMax: number,
  parse: (text: string) => Result<unknown, string>,
): Result<T, ProtocolError> => {
  if (body.byteLength > bytesMax) return err(invalid(`the body is larger than ${bytesMax} bytes`));
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    return err(invalid('the body is not UTF-8'));
  }
  const json = parse(text);
  if (!json.ok) return err(invalid(`the body ${json.error}`));
  return parseValue(message, json.value);
};

/** Checks a value against a message's schema, with the same typed refusal as {@link decodeBody}. */
export const parseValue = <T>(message: WireMessage<T>, value: unknown): Result<T, ProtocolError> => {
  const parsed = message.schema.safeParse(value);
  return parsed.success ? ok(parsed.data) : err(invalid(`not a ${message.name}: ${describeIssues(parsed.error)}`));
};

const ISSUES_SHOWN = 3;

/** Names of fields and the rule they broke. A key that a client chose is cut, so an error never carries a payload. */
export const describeIssues = (error: z.ZodError): string =>
  error.issues
    .slice(0, ISSUES_SHOWN)
    .map((issue) => {
      const place = issue.path.map((part) => String(part).slice(0, 64)).join('.') || 'body';
      return issue.code === 'unrecognized_keys' ? `${place}: unknown key` : `${place}: ${issue.message.slice(0, 160)}`;
    })
    .join('; ');

const invalid = (message: string): ProtocolError => ({ code: 'invalid_request', message: message.slice(0, 4096), retryable: false });
