const TEXTS: Readonly<Record<string, string>> = {
  grant_exists: 'a grant with this id exists or existed; choose another id',
  grant_not_found: 'there is no such grant in this namespace',
  not_the_issuer: 'only its issuer can revoke a grant',
  not_the_holder: 'only its holder can pass a grant on',
  identity_mismatch: 'the body names another principal than the one that published it',
  parent_inactive: 'the parent grant was revoked',
  parent_not_delegable: 'the parent grant may not be passed on: whoever issued it gave it no delegation depth',
  bounded_parent_not_delegable: 'a grant with a bounded number of uses cannot be passed on',
  depth_exhausted: 'the parent grant may be passed on fewer times than asked: ask for a smaller delegation depth, or none',
  capability_not_within_parent:
    'each capability must lie within one capability of the parent grant: its owner, resource, actions and scope',
  purpose_not_within_parent: 'the purposes must be among those of the parent grant',
  window_not_within_parent: 'the time it holds must be a window within that of the parent grant',
  empty_capabilities: 'a grant names at least one capability',
  id_collides_with_parent: 'a grant cannot have the id of its parent; choose another id',
  issued_before_parent: 'a grant cannot be older than its parent',
  command_too_large: 'the command is too large, or nested too deep, for the log',
  not_an_administrator: 'this needs a grant over sharedos.admin from a root principal of the namespace, or being one',
  version_conflict: 'somebody changed it meanwhile; read it again and state the version found',
  policy_invalid: 'the policy cannot be understood',
  too_many_stops: 'too many stops are in force; end some first',
  not_stopped: 'this is not stopped',
  agent_not_found: 'there is no such agent for you in this namespace',
  mcp_server_exists: 'you have another server under this name; remove it first, or choose another name',
  mcp_server_not_found: 'you have no server under this name',
  too_many_mcp_servers: 'you have as many servers as one owner may have',
  too_many_mcp_tools: 'the approved tools are too many, or their definitions too large; approve some of them by name',
  mcp_tool_refused: 'a tool cannot be approved as it is',
  audit_unavailable: 'the decision could not be recorded; nothing was changed, try again',
};

/** What a person reads of a refusal. Callers act on the code. */
export const refusalText = (code: string): string => TEXTS[code] ?? `the command was refused: ${code}`;
