import { randomUUID } from 'node:crypto';
import { BusConnectError, connectBus, mayPublish } from '@sharedos/bus';
import { principalSubject, SUBJECT_ROOT } from '@sharedos/contracts';
import type { Context } from '../context-file.ts';
import { type Finding, error } from './finding.ts';

const CONNECT_MS = 5_000;

/** Tries, as one principal of the context, what nobody may: to hear everybody, and to speak as somebody else. Neither changes anything. */
export const checkRights = async (context: Context, name: string): Promise<readonly Finding[]> => {
  const credentials = context.principals[name];
  if (credentials === undefined)
    return [error('principal_unknown', `the context has no credentials for ${name}`, 'correct its "defaultPrincipal"')];
  const connecting = connectBus({
    servers: context.natsUrl.split(','),
    ...(context.caFile === undefined ? {} : { caFile: context.caFile }),
    user: credentials.user,
    pass: credentials.password,
    inboxPrefix: credentials.inboxPrefix,
    name: 'sharedos-doctor',
    connectTimeoutMs: CONNECT_MS,
  });
  const bus = await connecting.catch((problem: unknown) => {
    if (problem instanceof BusConnectError) return problem;
    throw problem;
  });
  if (bus instanceof BusConnectError)
    return [
      error(
        'principal_refused',
        `${name}: ${bus.message}`,
        'write its credentials into the context again, or add it to the broker: "sharedos auth principal add"',
      ),
    ];
  try {
    const everything = `${SUBJECT_ROOT}.>`;
    // Nobody has this id, so where it is allowed the question finds nothing.
    const another = principalSubject('turn.get', context.namespaceId, { kind: 'human', userId: `nobody-${randomUUID()}` });
    const heard = await bus.subscribe(everything, () => undefined);
    const too = [...(heard.ok ? [`hear ${everything}`] : []), ...((await mayPublish(bus, another)) ? ['speak as another principal'] : [])];
    return too.length === 0
      ? []
      : [
          error(
            'rights_too_wide',
            `${name} may ${too.join(' and ')}: whoever has its password can read and ask everything`,
            'give the broker the generated configuration ("sharedos auth init", "nats-server --signal reload"), and change all passwords',
          ),
        ];
  } finally {
    await bus.close();
  }
};
