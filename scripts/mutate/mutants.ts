/** One rule, broken: in `file`, the one place that reads `find` is made to read `replace`. */
export interface Mutant {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The rule that no longer holds, as it stands while it does. */
  readonly rule: string;
}

type Edit = readonly [rule: string, find: string, replace: string];

const inFile = (file: string, edits: readonly Edit[]): readonly Mutant[] =>
  edits.map(([rule, find, replace]) => ({ file, find, replace, rule }));

/** The rules, broken one at a time. A number names one for as long as nothing is put before it: add at the end of a file's list. */
export const MUTANTS: readonly Mutant[] = [
  ...inFile('libs/kernel/src/matching.ts', [
    [
      'a missing owner means the owner the context names, and not anybody',
      'sameAddress(a ?? frame.owner, b ?? frame.owner)',
      '(a === undefined || b === undefined || sameAddress(a, b))',
    ],
    [
      'resource namespaces are equal or they do not match',
      'capability.resource.namespace === request.resource.namespace &&',
      'request.resource.namespace.startsWith(capability.resource.namespace) &&',
    ],
    [
      'a request for every action needs a capability that lists it',
      '(capability.actions.includes(request.action) || capability.actions.includes(ANY_ACTION)) &&',
      '(request.action === ANY_ACTION || capability.actions.includes(request.action) || capability.actions.includes(ANY_ACTION)) &&',
    ],
    [
      'a listed star covers every action',
      '(capability.actions.includes(request.action) || capability.actions.includes(ANY_ACTION)) &&',
      'capability.actions.includes(request.action) &&',
    ],
    [
      'nothing but the plain star expands',
      '(capability.actions.includes(request.action) || capability.actions.includes(ANY_ACTION)) &&',
      `capability.actions.some((action) => action === request.action || (action.endsWith('*') && request.action.startsWith(action.slice(0, -1)))) &&`,
    ],
    [
      'an exact capability does not reach below its path',
      '? samePath(request.resource.path, capability.resource.path)',
      '? isAtOrBelow(request.resource.path, capability.resource.path)',
    ],
    [
      'descendants include the path itself',
      ': isAtOrBelow(request.resource.path, capability.resource.path));',
      ': request.resource.path.length > capability.resource.path.length && isAtOrBelow(request.resource.path, capability.resource.path));',
    ],
    ['an exact capability above a ceiling reveals nothing', `(capability.scope === 'descendants' && isAtOrBelow(`, '(isAtOrBelow('],
    [
      'a narrow grant reveals a tool with a broad ceiling',
      '(isAtOrBelow(capability.resource.path, ceiling.resource.path) ||',
      '(samePath(capability.resource.path, ceiling.resource.path) ||',
    ],
    [
      `a capability over another owner's resources matches nothing here`,
      '  ownersAgree(capability.resource.owner, request.resource.owner, frame);',
      '  frame.owner !== undefined;',
    ],
  ]),
  ...inFile('libs/kernel/src/paths.ts', [
    [
      'segments are compared whole: cell-3 never covers cell-30',
      'if (path[index] !== prefix[index]) return false;',
      'if (!path[index]?.startsWith(prefix[index] as string)) return false;',
    ],
    ['the same path has the same length', 'a.length === b.length && isAtOrBelow(a, b)', 'isAtOrBelow(a, b)'],
  ]),
  ...inFile('libs/kernel/src/window.ts', [
    ['a grant is active from exactly its issue', 'bounds.issuedAt <= admittedAt', 'bounds.issuedAt < admittedAt'],
    ['an issue is judged at admission', 'bounds.issuedAt <= admittedAt', 'bounds.issuedAt <= Math.max(admittedAt, now)'],
    ['a start is inclusive', 'bounds.notBefore <= admittedAt', 'bounds.notBefore < admittedAt'],
    ['a window that opens within the turn is not honoured', 'bounds.notBefore <= admittedAt', 'bounds.notBefore <= now'],
    ['a clock that goes back revives nothing', `  admittedAt < bounds.expiresAt &&\n`, ''],
    ['a grant is over at exactly its end', 'now < bounds.expiresAt', 'now <= bounds.expiresAt'],
    ['an expiry within the turn is honoured', `  now < bounds.expiresAt &&\n`, ''],
    ['a grant is gone from exactly its revocation', 'admittedAt < bounds.revokedAt', 'admittedAt <= bounds.revokedAt'],
    ['a revocation stamped within the turn is seen by the next', 'admittedAt < bounds.revokedAt', 'now < bounds.revokedAt'],
    ['a time that cannot be read opens nothing', 'instantOf(text) ?? NaN', 'instantOf(text) ?? 0'],
  ]),
  ...inFile('libs/kernel/src/authority.ts', [
    ['exactly the limit of grants is accepted', 'if (material.length > grantLimit)', 'if (material.length >= grantLimit)'],
    ['an id twice in one set is no material', 'if (!entry.ok || ids.has(entry.value.grant.id)) return', 'if (!entry.ok) return'],
    [
      'one bad grant makes all of them unavailable: nothing is filtered',
      'if (!entry.ok || ids.has(entry.value.grant.id)) return',
      `if (!entry.ok) continue;\n    if (ids.has(entry.value.grant.id)) return`,
    ],
    [
      'a grant of another namespace makes the set unavailable',
      `  if (grant.namespaceId !== context.namespaceId) return 'namespace';\n`,
      '',
    ],
    ['a grant of another holder makes the set unavailable', `  if (!sameAddress(grant.subject, context.actor)) return 'subject';\n`, ''],
    ['a grant of another issuer makes the set unavailable', `  if (!sameAddress(grant.issuer, context.authority)) return 'issuer';\n`, ''],
    ['the hash names what is held and not its order', 'grants.map(canonicalJson).sort(byCodeUnit)', 'grants.map(canonicalJson)'],
  ]),
  ...inFile('libs/kernel/src/decide.ts', [
    [
      'a request over another owner is refused before any grant is looked at',
      'if (request.resource.owner !== undefined && !sameAddress(request.resource.owner, context.owner))',
      `if (request.resource.owner?.kind === 'service' && !sameAddress(request.resource.owner, context.owner))`,
    ],
    ['discovery never spends', `const consume = options.consume && mode === 'execute';`, 'const consume = options.consume;'],
    ['of broken chains the first seen is named', 'unverified ??= chain;', 'unverified = chain;'],
    ['of invalid chains the first seen is named', 'else invalid ??= chain;', 'else invalid = chain;'],
    [
      'a chain that could not be verified outranks one that is invalid',
      'if (unverified !== undefined) {',
      'if (unverified !== undefined && invalid === undefined) {',
    ],
    ['the first grant that the ceiling overrode is named', 'overridden ??= {', 'overridden = {'],
    [
      'a spent grant is told from one that never matched',
      `code: exhausted ? 'grant_exhausted' : 'no_matching_grant'`,
      `code: 'no_matching_grant'`,
    ],
    [
      'a denial of the host outranks a spent grant',
      'if (overridden !== undefined) return',
      'if (overridden !== undefined && !exhausted) return',
    ],
    [
      'a store of uses that cannot be asked ends the walk',
      `if (use === 'unavailable') return`,
      `if (use === 'unavailable') continue;\n    if (use === ('never' as string)) return`,
    ],
    [
      'a bounded grant without a store of uses fails closed',
      `if (use === 'missing_port') return`,
      `if (use === 'missing_port') return { code: 'allowed', grantId: id, rejections };\n    if (use === ('never' as string)) return`,
    ],
    [
      'a ceiling that breaks ends the walk',
      `if (answer.status === 'unavailable')`,
      `if (answer.status === 'unavailable') continue;\n      if (answer.status === ('never' as string))`,
    ],
    ['discovery describes no need', `code === 'no_matching_grant' && mode === 'execute' ?`, `code === 'no_matching_grant' ?`],
    [
      'a verifier that is installed is asked',
      'if (checks?.verifier !== true) return undefined;',
      'if (checks !== undefined) return undefined;',
    ],
    ['a grant serves the purposes it names and no other', `  if (!servesPurpose(grant, context.purpose)) return 'purpose';\n`, ''],
    ['a grant works inside its window only', `  if (!isInsideWindow(window, admittedAt, now)) return 'window';\n`, ''],
    [
      'live revocation takes the grant itself away',
      'if (answer.revokedGrantIds.includes(id)) return',
      'if (answer.revokedGrantIds.length > 99) return',
    ],
    [
      'live revocation takes away what descends from a revoked grant, however far',
      'chain.chain.find((ancestor) => answer.revokedGrantIds.includes(ancestor))',
      'chain.chain.slice(0, 1).find((ancestor) => answer.revokedGrantIds.includes(ancestor))',
    ],
    ['a use is reported taken only where one was', 'useTaken: consume', 'useTaken: true'],
    ['a grant that is bound to a call covers no other', `held.boundTo !== undefined && mode === 'execute'`, 'false'],
  ]),
  ...inFile('libs/kernel/src/chain.ts', [
    ['sixteen ancestors and no more', 'chain.length >= ancestorsMax', 'chain.length > ancestorsMax'],
    [
      'a resolver that answers with another grant has resolved nothing',
      'if (parent.grant.id !== parentGrantId) return',
      `if (parent.grant.id === '') return`,
    ],
    [
      'a chain that comes back to an ancestor is a cycle',
      'parentGrantId === presented.grant.id || chain.includes(parentGrantId) ?',
      'parentGrantId === presented.grant.id ?',
    ],
    [
      'a chain that comes back to the grant presented is a cycle',
      'parentGrantId === presented.grant.id || chain.includes(parentGrantId) ?',
      'chain.includes(parentGrantId) ?',
    ],
    ['no chain leaves its namespace', `  if (outer.namespaceId !== inner.namespaceId) return 'namespace_mismatch';\n`, ''],
    ['only its holder passes a grant on', `  if (!sameAddress(outer.subject, inner.issuer)) return 'issuer_not_parent_subject';\n`, ''],
    ['an ancestor outside its window confers nothing', '!isInsideWindow(parent.window, admittedAt, now) || ', ''],
    ['an ancestor for another purpose confers nothing', ' || !servesPurpose(outer, context.purpose)', ''],
    ['a parent without depth is not passed on', `  if (depth < 1) return 'delegation_not_permitted';\n`, ''],
    ['every link has less depth than the one above', '> depth - 1', '> depth'],
    ['a bounded grant is not passed on', `if (outer.constraints.maxUses !== undefined && sharedBudgets !== true)`, 'if (false)'],
    [`every capability of a child lies inside one of its parent's`, 'if (!inner.capabilities.every(', 'if (!inner.capabilities.some('],
    [
      'a start that is left out is the issue, and must lie inside',
      'notBefore: inner.constraints.notBefore ?? inner.issuedAt',
      'notBefore: inner.constraints.notBefore ?? outer.constraints.notBefore',
    ],
    ['no child is older than its parent', `  if (!(child.window.issuedAt >= parent.window.issuedAt)) return 'constraints_widened';\n`, ''],
  ]),
  ...inFile('libs/kernel/src/constraints.ts', [
    [
      'purposes left out under a parent that names some are a widening',
      '(inner !== undefined && inner.every(',
      '(inner === undefined || inner.every(',
    ],
    [
      'an end left out under a parent that ends is a widening',
      'return mine !== undefined && theirs !== undefined && isWithin(mine, theirs);',
      'return mine === undefined || (theirs !== undefined && isWithin(mine, theirs));',
    ],
    ['a start that equals the end satisfies both', 'notBefore.instant > expiresAt.instant', 'notBefore.instant >= expiresAt.instant'],
    ['the smallest count is the tightest', 'Math.min(...stated)', 'Math.max(...stated)'],
  ]),
  ...inFile('libs/kernel/src/delegation.ts', [
    ['a derived grant has an id of its own', `if (request.id === parent.id) return refused('id_collides_with_parent');`, ''],
    [
      'a bounded grant is refused at issue',
      `if (parent.constraints.maxUses !== undefined && !sharedBudgets) return refused('bounded_parent_not_delegable');`,
      '',
    ],
    ['a grant without depth is refused at issue', 'if (parentDepth <= 0) return', 'if (parentDepth < 0) return'],
    ['no more depth than remains is given at issue', 'asked.delegationDepth > parentDepth - 1', 'asked.delegationDepth > parentDepth'],
    [
      'issuing neither pins an owner nor drops one',
      'mine === undefined || theirs === undefined ? mine === theirs :',
      'mine === undefined || theirs === undefined ? true :',
    ],
    [
      'passing every action on needs every action',
      '(outer.actions.includes(ANY_ACTION) ||',
      '(outer.actions.includes(ANY_ACTION) || inner.actions.includes(ANY_ACTION) ||',
    ],
    ['an exact capability does not become a subtree', `? inner.scope === 'exact' && samePath(`, '? samePath('],
    ['who passes a grant on is its issuer', 'issuer: parent.subject,', 'issuer: parent.issuer,'],
    [
      `depth that is not asked for is one less than the parent's`,
      'asked.delegationDepth ?? parentDepth - 1',
      'asked.delegationDepth ?? parentDepth',
    ],
    [
      'a child dated before its parent is refused as that',
      `return refused('issued_before_parent');`,
      `return refused('window_not_within_parent');`,
    ],
  ]),
  ...inFile('libs/kernel/src/ceiling.ts', [
    ['a ceiling passes the very grant it was shown', 'named === matchedGrantId ?', 'named !== undefined ?'],
    [
      'what is no answer of a ceiling is no pass',
      `if (allowed !== false) return { status: 'unavailable' };`,
      `if (allowed !== false) return { status: 'passed' };`,
    ],
    ['without its policy a ceiling is not asked', `if (policy?.status === 'unavailable') return { status: 'unavailable' };`, ''],
    ['a ceiling sees copies', 'structuredClone(request), structuredClone(context)', 'request, context'],
  ]),
  ...inFile('libs/kernel/src/public-decision.ts', [
    ['a denial names no grant', '(allowed && matchedGrantId !== undefined ?', '(matchedGrantId !== undefined ?'],
    [
      'of a broken chain the caller hears the rule and not the link',
      '{ metadata: { delegation: { code: delegation } } }',
      '{ metadata: metadata as never }',
    ],
  ]),
  ...inFile('libs/kernel/src/reach.ts', [
    ['a spent grant reaches nothing', `if (use === 'exhausted') continue;`, ''],
    [`reach is over the context's owner`, 'if (!sameAddress(resource.owner ?? context.owner, context.owner)) continue;', ''],
    ['reach spends nothing', '...useOf([budget, ...above]), consume: false', '...useOf([budget, ...above]), consume: true'],
  ]),
  ...inFile('libs/kernel/src/tool-call.ts', [
    ['a tool has one action', 'requirement.action === ceiling.action &&', ''],
    [
      'a tool is called at or below its declared path',
      'isAtOrBelow(requirement.resource.path, ceiling.resource.path);',
      'isAtOrBelow(ceiling.resource.path, requirement.resource.path);',
    ],
    [
      'a tool that may not be seen says nothing about its arguments',
      'if (!discovery.decision.allowed) {',
      `if (!discovery.decision.allowed && discovery.decision.reasonCode === 'allowed') {`,
    ],
  ]),
  ...inFile('libs/kernel/src/required-authority.ts', [
    [
      'a described need names the owner only where the request did',
      '(owner === undefined ? {} : { owner })',
      '({ owner: owner ?? context.owner })',
    ],
  ]),
  ...inFile('libs/kernel/src/grant.ts', [
    [
      'only its issuer revokes a grant',
      `if (command.asOperator !== true && !sameAddress(command.requestedBy, state.grant.issuer)) return refuse({ code: 'not_the_issuer' });`,
      '',
    ],
    ['a revoked grant is never issued again', `return state.status === 'absent' ? accept(`, `return state.status !== 'active' ? accept(`],
    [
      `a root grant is over its issuer's own resources`,
      'resource: { ...capability.resource, owner: issuer }',
      'resource: capability.resource',
    ],
    ['only its holder derives from a grant', `if (!sameAddress(parent.subject, requestedBy)) return err({ code: 'not_the_holder' });`, ''],
    ['nothing is derived from a revoked grant', `if (parent.revokedAt !== undefined) return err({ code: 'parent_inactive' });`, ''],
  ]),
  ...inFile('libs/kernel/src/execution.ts', [
    ['a request from the future is refused', 'requestedAt <= now + skewMs', 'requestedAt <= Infinity'],
    [
      'an id used for something else is a conflict',
      '!isRedelivery && claimed.fingerprint !== fingerprint',
      `!isRedelivery && claimed.fingerprint === ''`,
    ],
  ]),
  ...inFile('libs/kernel/src/authority-index.ts', [
    ['compiled authority follows the owner of the context too', 'if (!ownersAgree(resource.owner, undefined, context)) continue;', ''],
    [
      'compiled authority holds nothing that was unfit at admission',
      'if (unfitness(held, atAdmission, context) !== undefined) return;',
      '',
    ],
  ]),
  ...inFile('libs/kernel/src/compiled-authority.ts', [
    [
      'compiled authority settles no chain that was not judged',
      'isUnbounded(grant) && grant.grant.parentGrantId === undefined ? grant.window.expiresAt',
      'isUnbounded(grant) ? grant.window.expiresAt',
    ],
    [
      'compiled authority is over at exactly the end of a grant',
      'if (!(now < (openUntil[first] as number))) return undefined;',
      'if (!(now <= (openUntil[first] as number))) return undefined;',
    ],
  ]),
  ...inFile('services/authorizer/src/turns/turn-token.ts', [
    [
      'a token is good for the context it was opened for',
      `if (claims.contextHash !== hashOf(identity)) return err('context_mismatch');`,
      '',
    ],
    [
      'a remembered token is good for that context alone',
      'known !== undefined && isDeepStrictEqual(known.identity, identity)',
      'known !== undefined',
    ],
    [
      'a token is over at exactly its end',
      'now >= (instantOf(verified.value.validUntil) ?? 0)',
      'now > (instantOf(verified.value.validUntil) ?? 0)',
    ],
    [
      'a token is signed',
      'if (given.length !== expected.length || !timingSafeEqual(given, expected)) return',
      'if (given.length !== expected.length) return',
    ],
  ]),
  ...inFile('services/authorizer/src/turns/asked-turn.ts', [
    ['expiry is live within a turn', 'const now = Math.max(turn.value.admittedAt, asked, clock());', 'const now = turn.value.admittedAt;'],
  ]),
  ...inFile('services/authorizer/src/turns/open-authority.ts', [
    ['a turn is admitted no earlier than any event it sees', 'clock(), fold.index.latestInstant(position))', 'clock())'],
  ]),
  ...inFile('services/authorizer/src/fold/grant-table.ts', [
    [
      'a revocation counts from its own place in the log',
      'revoked !== Infinity && revoked <= position',
      'revoked !== Infinity && revoked < position',
    ],
    [
      'a revocation is handed out as no later than the admission',
      'timestampOf(Math.min(this.revokedAt(row), admittedAt))',
      'timestampOf(this.revokedAt(row))',
    ],
  ]),
  ...inFile('services/authorizer/src/fold/held-grants.ts', [
    ['a turn holds nothing that was issued after it was opened', 'if (!wasIssued(row)) continue;', ''],
    ['a turn still holds what was revoked after it was opened', 'const live = returned.filter(', 'const live = [].filter('],
    ['a list is handed out again only while nothing in it expired', 'admittedAt < known.until', 'true'],
  ]),
  ...inFile('services/authorizer/src/fold/authority-index.ts', [
    [
      'an ancestor issued after the turn was opened is not found',
      'row === undefined || !this.#table.isIssuedAt(row, position)',
      'row === undefined',
    ],
  ]),
  ...inFile('libs/kernel/src/policy.ts', [
    [
      'setting the policy ends no stop',
      'return { ...state, version, document: event.document };',
      'return { ...state, version, document: event.document, stops: [] };',
    ],
    ['a command for another version than stands is refused', 'if (conflict !== undefined) return refuse(conflict);', ''],
  ]),
  ...inFile('libs/kernel/src/rules-policy.ts', [
    [
      'a freeze of everybody leaves its operators their way back',
      'everybody !== undefined && !isOperatorsResource(request) ? everybody',
      'everybody !== undefined ? everybody',
    ],
    [
      'whoever asks for every action asks for a forbidden one',
      `action === '*' ? [...actions.values()] :`,
      `action === '**' ? [...actions.values()] :`,
    ],
  ]),
  ...inFile('libs/kernel/src/agent.ts', [
    [
      'a registration is active once its authority and its owner both agreed',
      '[authority, owner].every((party)',
      '[authority, owner].some((party)',
    ],
  ]),
  ...inFile('libs/kernel/src/escalation.ts', [
    ['an answer gives no more than was asked', `return 'wider_than_request';`, `return undefined;`],
    [
      'who reviews for others answers nothing that it asked itself',
      'registered === true && !sameAddress(by, question.requester)',
      'registered === true',
    ],
    [
      'who reviews for others gives nothing to a question that names nothing',
      'question.requestedAuthority === undefined && !isAsked(by, question)',
      'false',
    ],
  ]),
  ...inFile('services/authorizer/src/changes/admin-right.ts', [
    [
      'anybody may call a resource sharedos.admin, and only the grants of roots over their own count',
      'owner: root,\n  purpose',
      'owner: actor,\n  purpose',
    ],
    [
      'a decision of the management plane is on record before anything is changed',
      `if (!(await ports.audit(record)).ok) return err({ code: 'audit_unavailable' });`,
      'await ports.audit(record);',
    ],
  ]),
  ...inFile('services/authorizer/src/turns/turn-authorities.ts', [
    ['a turn is under the policy of its revision', 'this.policies.at(namespaceId, position)', 'this.policies.at(namespaceId, Infinity)'],
    ['live revocation is what the settings at the revision say', 'liveRevocation ? LIVE : FROZEN', 'FROZEN'],
  ]),
  ...inFile('libs/kernel/src/precedent.ts', [
    ['a decision by precedent names its matcher', `if (matcher.trim() === '')`, `if (matcher === '')`],
    [
      'the precedents that are judged are exactly those that were cited',
      'if (found.length !== ids.length || byId.size !== ids.length) return undefined;',
      'if (byId.size < ids.length) return undefined;',
    ],
    ['a precedent has an age beyond which it is missing', '<= ageMaxMs)', '<= Infinity)'],
    ['a precedent is of the same owner', '&& sameAddress(key.owner, request.owner))', ')'],
    [
      'an allow leans on no refusal',
      `if (row.outcome === 'refused') return err('allow_cites_refusal');`,
      `if (row.outcome === 'refused') continue;`,
    ],
    [
      'an allow leans on nothing that a later refusal overtook',
      `if (isOvertaken(rows, newest, 'refused')) return err('allow_cites_refusal');`,
      '',
    ],
    [
      'an allow leans on what the same requester was allowed',
      `if (!sameAddress(row.key.requester, request.requester)) return err('precedent_not_this_requester');`,
      '',
    ],
    [
      'an allow is within every cited approval',
      `if (!allWithin(proposed, capabilities, request)) return err('wider_than_precedent');`,
      `if (!approvals.some((one) => allWithin(proposed, one.capabilities, request))) return err('wider_than_precedent');`,
    ],
    [
      'the same question, once answered narrower, is asked of a human again',
      'if (precedentDigest(key) === asked && !allWithin(request.capabilities, capabilities, request))',
      'if (precedentDigest(key) !== asked && !allWithin(request.capabilities, capabilities, request))',
    ],
    [
      'an allow is never wider than the ask',
      `if (!allWithin(proposed, request.capabilities, request)) return err('wider_than_request');`,
      '',
    ],
    ['what a precedent allowed is never passed on', '{ ...tightest, delegationDepth: 0 }', '{ ...tightest }'],
    [
      'a match is exact only if every cited question is the same',
      'rows.every(({ key }) => precedentDigest(key) === asked)',
      'rows.some(({ key }) => precedentDigest(key) === asked)',
    ],
  ]),
  ...inFile('libs/kernel/src/precedent-key.ts', [
    ['an unowned resource in a question is the owner’s', 'owner: resource.owner ?? owner }', 'owner: resource.owner ?? null }'],
    ['the order of capabilities makes no other question', '.sort(([a], [b]) => byCodeUnit(a, b))', ''],
  ]),
  ...inFile('libs/runtime/src/mcp/bridge.ts', [
    ['an unknown version is answered with the default one', '?? MCP_VERSIONS[0],', '?? MCP_VERSIONS[2],'],
    ['a closed bridge reaches nobody', `if (closing.signal.aborted) return rpcError(id, 'internal');`, ''],
    ['messages are handled one after another', 'last.then(() => answerText(text, answerSafely))', 'answerText(text, answerSafely)'],
    ['a stopped turn aborts the call under it', 'await untilAborted(options.invoke(asked), stopped)', 'await options.invoke(asked)'],
  ]),
  ...inFile('libs/runtime/src/mcp/escalation-latch.ts', [
    ['nothing runs once a human was asked for', 'if (reason !== undefined) {', `if (reason !== undefined && tool === ESCALATE_TOOL) {`],
    ['only a turn that was given it asks for a human', '|| !turn.offered.has(ESCALATE_TOOL)', ''],
  ]),
  ...inFile('libs/runtime/src/mcp/published.ts', [
    ['a name without dots means a tool only where it means one', 'portable.has(spelled) ? undefined : name', 'name'],
    ['an output is structured only where the tool states one', 'tool?.outputSchema !== undefined && isObject', 'isObject'],
  ]),
  ...inFile('libs/runtime/src/mcp/session-token.ts', [
    [
      'a session token is over at its instant',
      '(instantOf(claims.data.expiresAt) ?? NaN)))',
      '(instantOf(claims.data.expiresAt) ?? NaN) + 1))',
    ],
    [
      'a session token is for its own session',
      'canonicalJson(session) === canonicalJson(expected)',
      'session.executionId === expected.executionId',
    ],
  ]),
  ...inFile('libs/runtime/src/mcp/http.ts', [
    [
      'nobody is heard without the token of the session',
      'if (token === undefined || !mayConnect(token))',
      'if (token !== undefined && !mayConnect(token))',
    ],
  ]),
  ...inFile('libs/runtime/src/harness/harness-runtime.ts', [
    [
      'a harness gets nothing of our environment',
      'env: { HOME: scratch,',
      'env: { ...(globalThis.process.env as Record<string, string>), HOME: scratch,',
    ],
    [
      'a harness that asked for a human has asked however it ends',
      'if (latch.reason !== undefined) {',
      `if (latch.reason !== undefined && ending.type === 'complete') {`,
    ],
  ]),
  ...inFile('libs/runtime/src/model/model-driver.ts', [
    [
      'arguments that are no JSON object are never replaced by an empty one',
      'if (!given.success) return this.#refuseMalformed(call);',
      "if (!given.success) return { type: 'tool_call', call: { id: call.id, tool: this.#names.toolOf(call.name), arguments: {}, ...this.#stamp } };",
    ],
    [
      'the ninth call that cannot be read ends the turn',
      'if (this.#malformed > this.#options.maxMalformedCalls) {',
      'if (this.#malformed > this.#options.maxMalformedCalls + 1) {',
    ],
    ['nothing of a truncated reply is used', 'if (reply.truncated)', 'if (reply.truncated && reply.calls.length === 0)'],
    [
      'a model is asked again only when all of its calls are answered',
      'this.#waiting = reply.calls;',
      'this.#waiting = reply.calls.slice(0, 1);',
    ],
  ]),
  ...inFile('libs/runtime/src/model/tool-names.ts', [
    ['two tools never share a name on the wire', 'if (other !== undefined) throw', 'if (other === name) throw'],
    [
      'a name that no tool of the turn has is passed on',
      "byWireName.get(wireName) ?? wireName.replaceAll('_', '.')",
      '(byWireName.get(wireName) ?? [...byWireName.values()][0] ?? wireName)',
    ],
  ]),
  ...inFile('libs/runtime/src/model/ask-model.ts', [
    ['what has begun to answer is not asked again', 'const transient = !answered && (', 'const transient = ('],
    ['a model is asked twice at the most', 'const ATTEMPTS_MAX = 2;', 'const ATTEMPTS_MAX = 3;'],
    ['a credential is renewed once for a request', '&& !renewed) {', '&& sent < 4) {'],
  ]),
  ...inFile('libs/runtime/src/model/guarded-fetch.ts', [
    ['a reply of a model is bounded', 'if (bytes > bytesMax)', 'if (bytes > bytesMax * 16)'],
    ['a key does not follow a redirect', "redirect: 'manual'", "redirect: 'follow'"],
  ]),
  ...inFile('libs/runtime/src/remote/remote-driver.ts', [
    [
      'an answer without the token of its step is none',
      'if (!verified.ok) throw',
      "if (!verified.ok && verified.error === 'malformed') throw",
    ],
    ['an answer to another step is none', 'if (answer.step !== step.step) throw', 'if (answer.step < step.step) throw'],
    ['an agent elsewhere does not say when it asked', 'requestedAt: now }', 'requestedAt: timestampOf(this.#options.clock() + 1) }'],
  ]),
  ...inFile('libs/kernel/src/embedded/once.ts', [
    [
      'the same id with another input is a conflict',
      `if (record.fingerprint !== fingerprint) return refuse('denied', 'replay_conflict');`,
      '',
    ],
    ['the same at another instant is the same', 'const { now: _, ...stated } = context;', 'const stated = context;'],
    ['what was stopped under way is never done again to be sure', `await settle({ state: 'interrupted' });`, ''],
    ['an answer that could not be kept is not given', '? result : refuse', '|| true ? result : refuse'],
  ]),
  ...inFile('libs/kernel/src/operation-calls.ts', [
    [
      'only what is unknown can be found out',
      `if (call?.state === 'unknown') return ok('new');`,
      `if (call !== undefined) return ok('new');`,
    ],
    ['the first finding stands', `if (calls.get(callId)?.state === 'unknown')`, 'if (calls.has(callId))'],
    ['an answer that came late is an answer', `calls.set(record.callId, { state: 'known' });`, ''],
  ]),
  ...inFile('libs/kernel/src/execution.ts', [
    ['a turn that has expired is not run', `if (record.type === 'expired') return`, `if (false && record.type === 'expired') return`],
  ]),
  ...inFile('libs/ledger/src/expire-turns.ts', [
    ['what runs does not expire', 'const isDue = isOver(record) && ', 'const isDue = '],
    ['nothing is taken out that nobody has published', ' || last.sequence > published.value', ''],
    ['the record of expiry stays when the rest goes', 'isOld ? 0 : 1', '0'],
  ]),
  ...inFile('services/tool-executor/src/namespace-limits.ts', [
    ['no more turns wait than may', 'waitingBehind >= turnsQueuedMax', 'waitingBehind >= turnsQueuedMax * 2'],
    ['requests saved up are a second’s worth at most', 'Math.min(perSecond, counted.tokens', 'Math.min(Infinity, counted.tokens'],
  ]),
  ...inFile('services/tool-executor/src/accept-request.ts', [
    ['only a service is a trusted host', `from.requester.kind === 'service' && isRoot(`, 'isRoot('],
    ['a context stated by anybody else is refused', 'if (request.context !== undefined && !isHost) {', 'if (false) {'],
  ]),
  ...inFile('libs/kernel/src/escalation-grant.ts', [
    ['an answer about one call allows it once', 'call !== undefined && usesMax !== 1', 'false'],
  ]),
  ...inFile('services/authorizer/src/escalations/resolve-escalation.ts', [
    [
      'a grant whose question was refused meanwhile is taken back',
      'const undone = await undoApproval(this.#ports, this.#delivery, issued, at);',
      'const undone = ok(undefined);',
    ],
    ['an answer about a call is bound to that call', 'this.#state.question.call?.digest', 'undefined'],
  ]),
  ...inFile('services/authorizer/src/escalations/keep-escalations.ts', [
    ['an approval that was cut short is finished', `status === 'open' && issued !== undefined`, 'false'],
    [
      'a grant whose question was answered otherwise is taken back by any replica',
      'isUnanswered(status) && issued !== undefined',
      'false && issued !== undefined',
    ],
  ]),
  ...inFile('services/authorizer/src/escalations/webhook.ts', [
    ['what is told goes nowhere but where the operator said', `redirect: 'manual'`, `redirect: 'follow'`],
  ]),
  ...inFile('libs/kernel/src/mcp-servers.ts', [
    ['what was seen of a server is not told of what was approved since', 'tool.hash === hash', 'true'],
    ['approving what changed ends the change', 'becomes({ tools: event.tools, changed: [] })', 'becomes({ tools: event.tools })'],
    ['two tools that are one name without dots are not approved together', 'if (other !== undefined) return', 'if (other === name) return'],
  ]),
  ...inFile('libs/kernel/src/mcp-requirement.ts', [
    ['an argument is a member of its own', 'Object.hasOwn(value, key)', '(key in value)'],
    ['an argument that is one segment stays one', `if (part.kind === 'segment') return [text];`, ''],
  ]),
  ...inFile('libs/tools/src/mcp/mcp-tools.ts', [
    ['a tool that is not what was approved is not called', 'if (hashes.get(name) !== hash) {', 'if (false) {'],
    ['an argument that the tool was not approved with is refused', '.some((name) => !known.has(name))', '.some(() => false)'],
    [
      'a tool that was seen to have changed is off',
      'tools.filter(({ name }) => !changed.includes(name)).map',
      'tools.filter(() => changed.length >= 0).map',
    ],
  ]),
  ...inFile('libs/tools/src/mcp/stdio-transport.ts', [
    ['an answer of ours to a server lets it send no more', `if ('method' in message && 'id' in message) [`, 'if (true) ['],
  ]),
  ...inFile('libs/tools/src/mcp/http-transport.ts', [
    [
      'a server behind a URL is not followed elsewhere',
      `{ ...init, redirect: 'error', signal }`,
      `{ ...init, redirect: 'follow', signal }`,
    ],
  ]),
  ...inFile('libs/tools/src/mcp/secret-store.ts', [
    [
      'a secret opens in its own place alone',
      'scope.namespaceId, scope.owner, scope.server, name]',
      'scope.namespaceId, scope.server, name]',
    ],
  ]),
];
