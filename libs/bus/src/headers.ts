import { type Context, ROOT_CONTEXT, type TextMapGetter, context, propagation } from '@opentelemetry/api';
import { type MsgHdrs, headers as emptyHeaders } from 'nats';

/** Headers to send. Names are written as given; a value must not hold a line break. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Anything that was received with headers. */
export interface WithHeaders {
  /** The header's first value; `undefined` when it is absent or empty. Names are compared exactly. */
  header(name: string): string | undefined;
}

/** W3C trace headers of the active OpenTelemetry context; empty while no trace is active or nothing propagates. */
export const traceHeaders = (): Record<string, string> => {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  return carrier;
};

const getter: TextMapGetter<WithHeaders> = {
  keys: () => [],
  get: (message, name) => message.header(name),
};

/** The trace context that a message was sent in, to run its handler under. Never anything of our own active context. */
export const contextFromHeaders = (message: WithHeaders): Context => propagation.extract(ROOT_CONTEXT, message, getter);

/** @throws NatsError when a name or value cannot stand in a header: callers write constants and tokens there. */
export const toNatsHeaders = (...all: readonly (HeaderFields | undefined)[]): MsgHdrs => {
  const written = emptyHeaders();
  for (const fields of all) {
    if (fields === undefined) continue;
    for (const name in fields) written.set(name, fields[name] as string);
  }
  return written;
};

export const headerOf = (headers: MsgHdrs | undefined, name: string): string | undefined => headers?.get(name) || undefined;
