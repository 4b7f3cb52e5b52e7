/** A value handed to us breaks its contract. `code` is stable; the message names fields, never their values. */
export class ContractError extends Error {
  override readonly name = 'ContractError';
  readonly code = 'contract_error';

  /** @param violation What is wrong with it; without one, `what` is the whole message. */
  constructor(what: string, violation?: string) {
    super(violation === undefined ? what : `not a valid ${what}: ${violation}`);
  }
}

/** What a host registers with a kernel. */
export type RegistrationKind = 'tool' | 'resource namespace' | 'tool provider' | 'tool namespace settings';

/** A host registered the same thing twice. */
export class DuplicateRegistrationError extends Error {
  override readonly name = 'DuplicateRegistrationError';
  readonly code = 'duplicate_registration';
  readonly kind: RegistrationKind;
  readonly identifier: string;

  constructor(kind: RegistrationKind, identifier: string) {
    super(`a ${kind} named ${identifier} is already registered`);
    this.kind = kind;
    this.identifier = identifier;
  }
}

/** A host asked for something that it has to register first. */
export class MissingRegistrationError extends Error {
  override readonly name = 'MissingRegistrationError';
  readonly code = 'missing_registration';
  readonly kind: RegistrationKind;
  readonly identifier: string;

  constructor(kind: RegistrationKind, identifier: string) {
    super(`no ${kind} is registered for ${identifier}`);
    this.kind = kind;
    this.identifier = identifier;
  }
}
