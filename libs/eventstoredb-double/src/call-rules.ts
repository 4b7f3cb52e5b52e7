import type { Metadata, ServiceError } from '@grpc/grpc-js';
import type { Faults } from './faults.ts';
import { noLeaderInfo, notLeader, unauthenticated } from './rpc-error.ts';

/** Names and passwords of those who may call; everybody when absent, as on a server that was started insecure. */
export type Users = Readonly<Record<string, string>>;

/** Why a call is refused before anything is done, or `undefined`. */
export const whyRefused = (metadata: Metadata, users: Users | undefined, faults: Faults): ServiceError | undefined => {
  if (users !== undefined && !isKnown(metadata, users)) return unauthenticated();
  const elsewhere = faults.leaderElsewhere;
  if (elsewhere === undefined || metadata.get('requires-leader')[0] !== 'true') return undefined;
  return elsewhere === 'unknown' ? noLeaderInfo() : notLeader(elsewhere.host, elsewhere.port);
};

const isKnown = (metadata: Metadata, users: Users): boolean => {
  const basic = /^Basic (.+)$/.exec(String(metadata.get('authorization')[0] ?? ''))?.[1];
  if (basic === undefined) return false;
  const text = Buffer.from(basic, 'base64').toString('utf8');
  const at = text.indexOf(':');
  const password = Object.hasOwn(users, text.slice(0, at)) ? users[text.slice(0, at)] : undefined;
  return at > 0 && password === text.slice(at + 1);
};
