import { CapabilityRequirement } from '@sharedos/contracts';

const read = new WeakSet<object>();

/**
 * Reads what an operation asks for. Identifiers come back trimmed, and all later comparison uses those.
 *
 * What was read here before is recognised and not read again: it is frozen, so it cannot have changed since. A caller that
 * decides the same requirement often reads it once and keeps the answer.
 *
 * @returns The requirement, deeply frozen, or `undefined` when it does not meet its contract.
 */
export const parseRequirement = (value: CapabilityRequirement): Readonly<CapabilityRequirement> | undefined => {
  if (read.has(value)) return value;
  const parsed = CapabilityRequirement.safeParse(value);
  if (!parsed.success) return undefined;
  const requirement = parsed.data;
  Object.freeze(requirement.resource.path);
  if (requirement.resource.owner !== undefined) Object.freeze(requirement.resource.owner);
  Object.freeze(requirement.resource);
  Object.freeze(requirement);
  read.add(requirement);
  return requirement;
};
