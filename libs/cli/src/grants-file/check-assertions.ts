import { type Address, type AuthorizationDecision, type CapabilityGrant, timestampOf } from '@sharedos/contracts';
import { InMemoryAuditSink, InMemoryGrantStore, InMemoryGrantUsageStore, CapabilityAuthorizer, SharedOSKernel } from '@sharedos/kernel';
import { principalName } from '../principal-name.ts';
import { resourceName } from '../resource-name.ts';
import { table } from '../table.ts';
import type { Assertion, AssertionsFile } from './assertions-file.ts';
import type { YamlFile } from './read-yaml.ts';

/** One assertion, and what the rules say. */
export interface Checked {
  readonly line: string;
  readonly assertion: Assertion;
  readonly decision: AuthorizationDecision;
  readonly holds: boolean;
}

/**
 * Decides each assertion by the rules that the services decide by, over grants at hand. Uses are not counted: a bounded grant
 * counts as unused.
 */
export const checkAssertions = async (
  file: YamlFile<AssertionsFile>,
  namespaceId: string,
  grants: Iterable<CapabilityGrant>,
  now: number,
): Promise<readonly Checked[]> => {
  const store = new InMemoryGrantStore();
  for (const grant of grants) store.issue(grant);
  const kernel = new SharedOSKernel({
    grantSource: store,
    authorizer: new CapabilityAuthorizer({ delegationResolver: store, usageStore: new InMemoryGrantUsageStore() }),
    audit: new InMemoryAuditSink(),
  });
  const checked: Checked[] = [];
  for (const [index, assertion] of file.value.assertions.entries()) {
    const { for: authority, owner = authority, purpose, to, resource, at = timestampOf(now), because } = assertion;
    const actor = (assertion.allow ?? assertion.deny) as Address;
    const context = { namespaceId, actor, authority, owner, purpose, traceId: 'check', enabledToolNamespaces: [], now: at };
    const decision = await kernel.authorize(context, { resource: { ...resource, owner }, action: to });
    const asWanted = decision.allowed === (assertion.allow !== undefined);
    const holds = asWanted && (because === undefined || because === decision.reasonCode);
    checked.push({ line: file.at(['assertions', index]), assertion, decision, holds });
  }
  return checked;
};

export const checkText = (checked: readonly Checked[]): string => {
  const rows = checked.map(({ line, assertion, decision, holds }) => [
    holds ? '✓' : '✗',
    line,
    `${principalName((assertion.allow ?? assertion.deny) as Address)} for ${principalName(assertion.for)}`,
    `${assertion.to} ${resourceName(assertion.resource)}`,
    JSON.stringify(assertion.purpose),
    assertion.allow === undefined ? `denied${assertion.because === undefined ? '' : ` (${assertion.because})`}` : 'allowed',
    decision.allowed ? `allowed by ${decision.matchedGrantId ?? ''}` : `denied (${decision.reasonCode})`,
  ]);
  const wrong = checked.filter(({ holds }) => !holds).length;
  const count = wrong === 0 ? `all ${checked.length} hold` : `${wrong} of ${checked.length} do not hold`;
  return `${table(['', 'LINE', 'WHO', 'WHAT', 'PURPOSE', 'EXPECTED', 'DECIDED'], rows)}${count}\n`;
};

export const checkJson = (checked: readonly Checked[]): unknown => ({
  assertions: checked.length,
  failed: checked.filter(({ holds }) => !holds).length,
  results: checked.map(({ line, assertion, decision, holds }) => ({
    holds,
    line,
    expected: assertion.allow === undefined ? 'denied' : 'allowed',
    ...(assertion.because === undefined ? {} : { because: assertion.because }),
    actor: (assertion.allow ?? assertion.deny) as Address,
    authority: assertion.for,
    action: assertion.to,
    resource: assertion.resource,
    purpose: assertion.purpose,
    decision,
  })),
});
