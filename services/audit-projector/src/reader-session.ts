import type { Delivery } from '@sharedos/bus';
import { type Address, type ProtocolError, type Result, addressKey, ok } from '@sharedos/contracts';
import { z } from 'zod';
import { mayRead } from './may-read.ts';
import type { Ports } from './ports.ts';

/** How long an answer spares the next question its own decision: a revoked grant reads on for no longer. */
const SESSION_MS = 30_000;

const Session = z.strictObject({ namespaceId: z.string(), principal: z.string(), authority: z.string(), until: z.number() });

interface Brought {
  readonly session?: string | undefined;
  readonly authority?: Address | undefined;
}

/**
 * The right to read, for questions that are asked many times: that of a session that was brought along, or of a new decision.
 *
 * Deciding about every page would make two records a page, which the reader would then be handed.
 */
export const readerSession = async (ports: Ports, brought: Brought, delivery: Delivery): Promise<Result<string, ProtocolError>> => {
  const session = sessionOf(ports, brought, delivery);
  return session === undefined ? newSession(ports, brought.authority, delivery) : ok(session);
};

/** The session that a question brought along, if a replica gave it to this reader and it has not ended. */
const sessionOf = ({ keys, clock }: Ports, { session, authority }: Brought, delivery: Delivery): string | undefined => {
  if (session === undefined || delivery.principal === undefined) return undefined;
  const claims = Session.safeParse(keys.claimsOf(session));
  if (!claims.success || clock() >= claims.data.until) return undefined;
  const { namespaceId, principal, authority: inNameOf } = claims.data;
  const isItsOwn = namespaceId === delivery.namespaceId && principal === addressKey(delivery.principal);
  return isItsOwn && (authority === undefined || addressKey(authority) === inNameOf) ? session : undefined;
};

const newSession = async (ports: Ports, authority: Address | undefined, delivery: Delivery): Promise<Result<string, ProtocolError>> => {
  const reader = await mayRead(ports, delivery, authority);
  if (!reader.ok) return reader;
  return ok(
    ports.keys.sessionOf({
      namespaceId: delivery.namespaceId,
      principal: addressKey(delivery.principal ?? reader.value),
      authority: addressKey(reader.value),
      until: ports.clock() + SESSION_MS,
    }),
  );
};
