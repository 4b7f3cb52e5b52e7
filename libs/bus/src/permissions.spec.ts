import {
  ADDRESS_KINDS,
  type Address,
  SERVICE_NAMES,
  SUBJECTS,
  type StreamName,
  type SubjectRow,
  type SubjectVerb,
  addressOf,
  inboxPrefix,
  namespaceSubject,
  principalSubject,
} from '@sharedos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  OPERATOR,
  PROVISIONER,
  WORK_QUEUES,
  crossings,
  operatorRights,
  principalRights,
  principalUser,
  provisionerRights,
  serviceInboxPrefix,
  serviceRights,
  streamSubjects,
  subjectPatterns,
} from './permissions.ts';
import { covers, overlap } from './subject-match.fixture.ts';

const VERBS = Object.keys(SUBJECTS) as SubjectVerb[];
const rowOf = (verb: SubjectVerb): SubjectRow => SUBJECTS[verb];
const STREAMS = [...new Set(VERBS.flatMap((verb) => ('stream' in SUBJECTS[verb] ? [SUBJECTS[verb].stream as StreamName] : [])))];
const alice = { kind: 'human', userId: 'alice' } as const;
const allowed = (patterns: readonly string[], subject: string): boolean => patterns.some((pattern) => covers(pattern, subject));

/** Small identifiers that collide when they are joined carelessly, and hostile ones. */
const identifier = fc.constantFrom(
  'a',
  'b',
  'a.b',
  'b.c',
  '*',
  '>',
  '~Kg',
  '../x',
  'a b',
  '😀',
  'x'.repeat(250),
  'turn',
  'human',
  '$JS',
  '_INBOX',
);
const principal = fc.tuple(fc.constantFrom(...ADDRESS_KINDS), identifier).map(([kind, id]): Address => addressOf(kind, id));
const someone = fc.record({ namespaceId: identifier, principal });

/** The subjects on which somebody is spoken for or to. */
const ownSubjects = ({ namespaceId, principal: who }: { namespaceId: string; principal: Address }) => ({
  publish: VERBS.filter((verb) => ['principal-request', 'principal-stream'].includes(rowOf(verb).use)).map((verb) =>
    principalSubject(verb as 'turn.get', namespaceId, who),
  ),
  subscribe: [
    `${inboxPrefix(namespaceId, who)}.x`,
    ...VERBS.filter((verb) => rowOf(verb).use === 'to-principal').map((verb) =>
      principalSubject(verb as 'turn.result', namespaceId, who, 'e1'),
    ),
    // Agents alone are asked: nobody else runs as one.
    ...(who.kind === 'agent' ? [principalSubject('runtime.step', namespaceId, who)] : []),
  ],
});

describe('a principal', () => {
  it('may ask under its own tokens and hear its own answers', () =>
    fc.assert(
      fc.property(someone, (who) => {
        const rights = principalRights(who);
        const own = ownSubjects(who);
        expect(own.publish.filter((subject) => !allowed(rights.publish, subject))).toEqual([]);
        expect(own.subscribe.filter((subject) => !allowed(rights.subscribe, subject))).toEqual([]);
      }),
    ));
  it('may neither speak as nor listen to anybody else', () => {
    let premiseMet = 0;
    fc.assert(
      fc.property(someone, someone, (who, other) => {
        if (JSON.stringify(who) === JSON.stringify(other)) return;
        premiseMet += 1;
        const rights = principalRights({ ...who, auditor: true });
        const theirs = ownSubjects(other);
        expect(theirs.publish.filter((subject) => allowed(rights.publish, subject))).toEqual([]);
        expect(theirs.subscribe.filter((subject) => allowed(rights.subscribe, subject))).toEqual([]);
        expect(principalUser(who.namespaceId, who.principal)).not.toBe(principalUser(other.namespaceId, other.principal));
      }),
      { numRuns: 1_000 },
    );
    expect(premiseMet).toBeGreaterThan(0);
  });
  it('may publish on nothing but literal subjects: no pattern can let a stray token through', () =>
    fc.assert(
      fc.property(someone, (who) => {
        expect(principalRights(who).publish.filter((subject) => /(^|\.)[*>](\.|$)/.test(subject))).toEqual([]);
      }),
    ));
  it.each(VERBS.filter((verb) => ['internal-request', 'internal-stream'].includes(rowOf(verb).use)))('has no right on %s', (verb) => {
    const rights = principalRights({ namespaceId: 'tenant', principal: alice, auditor: true });
    for (const pattern of subjectPatterns(verb)) {
      expect([...rights.publish, ...rights.subscribe].filter((right) => overlap(right, pattern))).toEqual([]);
    }
  });
  it.each(['$JS.>', '$SYS.>', '$SRV.>', '_R_.>', '$KV.>', `${serviceInboxPrefix('authorizer')}.>`])('has no right under %s', (pattern) => {
    const rights = principalRights({ namespaceId: 'tenant', principal: alice, auditor: true });
    expect([...rights.publish, ...rights.subscribe].filter((right) => overlap(right, pattern))).toEqual([]);
  });
  it('hears the feed of its namespace only when it is an auditor', () => {
    const feed = namespaceSubject('feed.audit', 'tenant', 'denied', 'tool', 'invoked');
    expect(allowed(principalRights({ namespaceId: 'tenant', principal: alice }).subscribe, feed)).toBe(false);
    expect(allowed(principalRights({ namespaceId: 'tenant', principal: alice, auditor: true }).subscribe, feed)).toBe(true);
    expect(allowed(principalRights({ namespaceId: 'other', principal: alice, auditor: true }).subscribe, feed)).toBe(false);
  });
});

describe('answering what services ask', () => {
  it('is for agents, and for nobody else', () =>
    fc.assert(
      fc.property(someone, (who) => {
        expect(principalRights({ ...who, auditor: true }).answers).toBe(who.principal.kind === 'agent' ? true : undefined);
      }),
    ));
  it.each(SERVICE_NAMES)('is not done by %s with a right to whatever reply subject it was given', (service) =>
    expect(serviceRights(service).answers).toBeUndefined(),
  );
});

describe('what crosses between the accounts', () => {
  const { requests, answers, agents } = crossings();
  it.each(VERBS)('%s crosses exactly when its row says so', (verb) => {
    const { use } = rowOf(verb);
    for (const pattern of subjectPatterns(verb)) {
      expect(requests.includes(pattern)).toBe(use === 'principal-request' || use === 'principal-stream');
      expect(answers.includes(pattern)).toBe(use === 'to-principal' || use === 'feed');
      expect(agents.includes(pattern)).toBe(use === 'agent-answers');
    }
  });
  it('nothing internal is inside a pattern that crosses', () => {
    const internal = VERBS.filter((verb) => rowOf(verb).use.startsWith('internal')).flatMap(subjectPatterns);
    expect([...requests, ...answers, ...agents].filter((crossing) => internal.some((pattern) => overlap(crossing, pattern)))).toEqual([]);
  });
  it('no request is also an answer, and what agents are asked is neither', () => {
    expect(requests.filter((request) => answers.some((answer) => overlap(request, answer)))).toEqual([]);
    expect(agents.filter((asked) => [...requests, ...answers].some((other) => overlap(asked, other)))).toEqual([]);
  });
});

describe('a stream', () => {
  it.each(STREAMS)('%s holds subjects of no other', (stream) => {
    const others = STREAMS.filter((other) => other !== stream).flatMap(streamSubjects);
    expect(streamSubjects(stream).filter((subject) => others.some((other) => overlap(subject, other)))).toEqual([]);
  });
  it.each(STREAMS)('%s holds no subject on which a service answers', (stream) => {
    const answered = VERBS.filter((verb) => ['principal-request', 'internal-request'].includes(rowOf(verb).use)).flatMap(subjectPatterns);
    expect(streamSubjects(stream).filter((subject) => answered.some((pattern) => overlap(subject, pattern)))).toEqual([]);
  });
  it('nor anything that the broker itself writes', () =>
    expect(
      STREAMS.flatMap(streamSubjects).filter((subject) => ['feed.audit'].some((verb) => overlap(subject, `sharedos.v1.*.${verb}.>`))),
    ).toEqual([]));
});

describe.each(SERVICE_NAMES)('the service %s', (service) => {
  const rights = serviceRights(service);
  it.each(VERBS)('publishes on %s only when its row names it', (verb) => {
    const row = rowOf(verb);
    const may = 'from' in row && (row.from as readonly string[]).includes(service);
    for (const pattern of subjectPatterns(verb)) expect(rights.publish.some((right) => overlap(right, pattern))).toBe(may);
  });
  it.each(VERBS)('hears %s only when its row says it serves it', (verb) => {
    const row = rowOf(verb);
    // That something was queued is heard as well; only the work queue hands it over.
    const isQueued = WORK_QUEUES['tool-executor'].verbs.some((queued) => queued === verb);
    const may = ('servedBy' in row && row.servedBy === service) || (isQueued && service === 'tool-executor');
    for (const pattern of subjectPatterns(verb)) expect(rights.subscribe.some((right) => overlap(right, pattern))).toBe(may);
  });
  it('touches only streams that it reads, writes or serves', () => {
    const own = new Set(
      VERBS.map(rowOf).flatMap((row) =>
        'stream' in row &&
        row.stream !== undefined &&
        (('from' in row && (row.from as readonly string[]).includes(service)) ||
          ('readBy' in row && row.readBy.includes(service)) ||
          ('servedBy' in row && row.servedBy === service))
          ? [row.stream]
          : [],
      ),
    );
    for (const stream of STREAMS) {
      const touched = rights.publish.some((right) => right.startsWith('$JS.') && right.split('.').includes(stream));
      expect([stream, touched]).toEqual([stream, own.has(stream)]);
    }
  });
  it('makes, changes, empties and removes no stream', () => {
    for (const verb of ['CREATE', 'UPDATE', 'DELETE', 'PURGE', 'RESTORE', 'SNAPSHOT']) {
      expect(rights.publish.filter((right) => overlap(right, `$JS.API.STREAM.${verb}.*`))).toEqual([]);
    }
  });
  it('hears no inbox but its own', () => {
    for (const other of [...SERVICE_NAMES, PROVISIONER, OPERATOR] as const) {
      if (other === service) continue;
      expect(rights.subscribe.filter((right) => overlap(right, `${serviceInboxPrefix(other)}.>`))).toEqual([]);
    }
    expect(rights.subscribe.filter((right) => overlap(right, '_R_.>') || overlap(right, '_INBOX.>'))).toEqual([]);
  });
  it('answers only those who may ask it', () => {
    for (const asker of SERVICE_NAMES) {
      const may = VERBS.map(rowOf).some((row) => row.use === 'internal-request' && row.servedBy === service && row.from.includes(asker));
      expect([asker, rights.publish.some((right) => overlap(right, `${serviceInboxPrefix(asker)}.>`))]).toEqual([asker, may]);
    }
  });
});

describe('the provisioner', () => {
  const rights = provisionerRights();
  it('neither publishes nor hears anything of the system', () =>
    expect([...rights.publish, ...rights.subscribe].filter((right) => overlap(right, 'sharedos.>'))).toEqual([]));
  it('cannot remove, empty or read a stream', () => {
    for (const verb of [
      'STREAM.DELETE.*',
      'STREAM.PURGE.*',
      'STREAM.MSG.GET.*',
      'STREAM.MSG.DELETE.*',
      'CONSUMER.MSG.NEXT.*.*',
      'CONSUMER.DELETE.*.*',
      'DIRECT.GET.*',
    ]) {
      expect(rights.publish.filter((right) => overlap(right, `$JS.API.${verb}`))).toEqual([]);
    }
  });
});

describe('the operator', () => {
  const rights = operatorRights();
  it('neither publishes nor hears anything of the system, and hears no inbox but its own', () => {
    expect([...rights.publish, ...rights.subscribe].filter((right) => overlap(right, 'sharedos.>'))).toEqual([]);
    for (const other of [...SERVICE_NAMES, PROVISIONER] as const)
      expect(rights.subscribe.filter((right) => overlap(right, `${serviceInboxPrefix(other)}.>`))).toEqual([]);
  });
  it('asks of JetStream only how it is set', () =>
    expect(rights.publish.filter((right) => right.startsWith('$JS.'))).toEqual([
      '$JS.API.INFO',
      '$JS.API.STREAM.INFO.*',
      '$JS.API.CONSUMER.INFO.*.*',
    ]));
  it('is answered by every service, and answers nobody', () => {
    for (const service of SERVICE_NAMES)
      expect(serviceRights(service).publish.some((right) => overlap(right, `${serviceInboxPrefix(OPERATOR)}.>`))).toBe(true);
    expect(rights.publish.filter((right) => overlap(right, '_INBOX_SERVICE.>') || overlap(right, '_R_.>'))).toEqual([]);
  });
});
