import type { AccessContext, CapabilityRequirement, JsonObj, PolicyDocument, Result } from '@sharedos/contracts';

/** Why a request is forbidden, for the record: the rule, and what whoever wrote it noted there. */
export interface Forbidden {
  readonly rule: string;
  readonly reason?: string | undefined;
  readonly details?: JsonObj;
}

/**
 * A policy made ready for many decisions: a pure function of one request and the context it was admitted with.
 *
 * It is asked about each decision before any grant is, so it must be synchronous and cheap, and must neither keep nor change what
 * it is given. It forbids or stays silent; it cannot allow. Whatever it throws makes the decision `host_policy_unavailable`.
 *
 * @returns `undefined` for what it does not forbid.
 */
export type CompiledPolicy = (request: CapabilityRequirement, context: AccessContext) => Forbidden | undefined;

/** A language that policies are written in. A host installs another one beside {@link rulesLanguage}. */
export interface PolicyLanguage {
  /** Whether a document is in this language, by its name alone. */
  speaks(language: string): boolean;
  /** @returns Why the document means nothing in this language: it is refused when it is set, and forbids everything if it was. */
  compile(document: PolicyDocument): Result<CompiledPolicy, string>;
}
