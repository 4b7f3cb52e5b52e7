import { readFileSync } from 'node:fs';
import { brokerAccounts, principalUser, renderNatsConfig } from '@sharedos/bus';
import { Address, NameId } from '@sharedos/contracts';
import { z } from 'zod';

const Principals = z.array(
  z.strictObject({ namespaceId: NameId, principal: Address, auditor: z.boolean().optional(), passwordVariable: z.string() }),
);

/** The variable of nats-server's environment that holds a user's password: `SHAREDOS_TOOL_EXECUTOR_PASSWORD`. */
const serviceVariable = (user: string): string => `SHAREDOS_${user.toUpperCase().replaceAll('-', '_')}_PASSWORD`;

/** The configuration of a deployed broker: the principals of a file, and no password in the text. */
export const deployedBrokerConfig = (principalsFile: string): string => {
  const principals = Principals.parse(JSON.parse(readFileSync(principalsFile, 'utf8'))).map(({ auditor, ...entry }) => ({
    ...entry,
    auditor: auditor === true,
  }));
  const variables = new Map(principals.map((entry) => [principalUser(entry.namespaceId, entry.principal), entry.passwordVariable]));
  if (variables.size !== principals.length) throw new Error(`${principalsFile} names a principal twice`);
  const accounts = brokerAccounts(principals, (user) => ({
    env: typeof user === 'string' ? serviceVariable(user) : (variables.get(principalUser(user.namespaceId, user.principal)) as string),
  }));
  return renderNatsConfig({ name: 'sharedos', host: '0.0.0.0', port: 4222, storeDir: '/data/jetstream' }, accounts);
};
