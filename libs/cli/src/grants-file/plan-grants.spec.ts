import { type CapabilityGrant, timestampOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { exportGrants } from './export-grants.ts';
import { GrantsFile } from './grants-file.ts';
import { type GrantsPlan, planGrants } from './plan-grants.ts';
import { parseYaml } from './read-yaml.ts';
import { planText } from './show-plan.ts';

const alice = { kind: 'human', userId: 'alice' } as const;
const NOW = Date.parse('2026-01-01T12:00:00Z');

const file = (entries: string, head = 'name: team'): string => `version: 1\n${head}\ngrants:\n${entries}`;
const entry = (id: string, more = '', resource = 'files:notes'): string =>
  `  - id: ${id}\n    to: agent:scout\n    allow: [{ resource: "${resource}", actions: [read] }]\n${more === '' ? '' : `    ${more}\n`}`;
const passedOn = (id: string, parent: string, to = 'human:bob'): string =>
  `  - id: ${id}\n    parent: ${parent}\n    to: ${to}\n    allow: [{ resource: "files:notes/ideas", actions: [read] }]\n`;

const plan = (text: string, standing: readonly CapabilityGrant[] = [], taken: readonly string[] = []): GrantsPlan =>
  planGrants(
    parseYaml(text, 'grants.yaml', GrantsFile),
    alice,
    { namespaceId: 'w1', grants: new Map(standing.map((grant) => [grant.id, grant])), taken: new Set(taken) },
    NOW,
  );
const said = ({ steps }: GrantsPlan): string[] => steps.map((step) => `${step.do} ${step.grant.id}`);
/** What stands once a plan is carried out. */
const done = ({ steps }: GrantsPlan, before: readonly CapabilityGrant[] = []): CapabilityGrant[] => {
  const standing = new Map(before.map((grant) => [grant.id, grant]));
  for (const { do: what, grant } of steps) standing.set(grant.id, what === 'revoke' ? { ...grant, revokedAt: timestampOf(NOW) } : grant);
  return [...standing.values()];
};
const refusal = (text: string, standing: readonly CapabilityGrant[] = []): string => {
  try {
    plan(text, standing);
  } catch (error) {
    if (error instanceof CommandFailure) {
      expect(error.exitCode).toBe(EXIT.usage);
      return error.message;
    }
    throw error;
  }
  return expect.unreachable('it should have been refused');
};

describe('a plan', () => {
  it('adds what is not there, under its own name', () => expect(said(plan(file(entry('a') + entry('b'))))).toEqual(['add a', 'add b']));

  it('is no change once it was carried out, whatever the order of the entries', () => {
    const standing = done(plan(file(entry('a') + entry('b'))));
    expect(said(plan(file(entry('b') + entry('a')), standing))).toEqual(['keep b', 'keep a']);
    expect(planText(plan(file(entry('a')), done(plan(file(entry('a'))))), NOW)).toMatch(/^= a .*\nno change: 1 kept\n$/);
  });

  it('issues a changed entry under its name and its content, and then revokes the one before', () => {
    const standing = done(plan(file(entry('a'))));
    const changed = plan(file(entry('a', 'max-uses: 5')), standing);
    expect(said(changed)).toEqual([expect.stringMatching(/^add a-[0-9a-f]{8}$/) as string, 'revoke a']);
    expect(said(plan(file(entry('a', 'max-uses: 5')), done(changed, standing)))).toEqual([`keep ${changed.steps[0]?.grant.id}`]);
  });

  it('never uses an id twice: content that comes back, and comes back again, has other ids', () => {
    let standing = done(plan(file(entry('a'))));
    const ids = new Set<string>();
    for (const more of ['max-uses: 5', '', 'max-uses: 5', '']) {
      const next = plan(file(entry('a', more)), standing);
      ids.add(next.steps[0]?.grant.id as string);
      standing = done(next, standing);
    }
    expect(ids.size).toBe(4);
    expect(standing.filter(({ revokedAt }) => revokedAt === undefined)).toHaveLength(1);
  });

  it('goes round an id that somebody else was found to have used', () =>
    expect(said(plan(file(entry('a')), [], ['a']))).toEqual([expect.stringMatching(/^add a-[0-9a-f]{8}$/) as string]));

  it('issues anew what was revoked by hand', () => {
    const standing = done(plan(file(entry('a')))).map((grant) => ({ ...grant, revokedAt: timestampOf(NOW) }));
    expect(plan(file(entry('a')), standing).steps[0]).toMatchObject({ do: 'add', why: 'revoked' });
  });

  it('revokes what left the file, and leaves alone what others made', () => {
    const standing = [...done(plan(file(entry('a') + entry('b')))), ...done(plan(file(entry('c'), 'name: another')))];
    const next = plan(file(entry('a')), standing);
    expect(said(next)).toEqual(['keep a', 'revoke b']);
    expect(next.others).toBe(1);
  });

  it('revokes whatever else its issuer issued where the file says so', () => {
    const standing = [...done(plan(file(entry('a')))), ...done(plan(file(entry('c'), 'name: another')))];
    expect(said(plan(file(entry('a'), 'name: team\nmanage: all'), standing))).toEqual(['keep a', 'revoke c']);
  });

  it('keeps a grant made by hand that says the same', () => {
    const [made] = done(plan(file(entry('a')))) as [CapabilityGrant];
    const { metadata: _, ...byHand } = made;
    expect(said(plan(file(entry('a')), [byHand]))).toEqual(['keep a']);
  });

  it('passes on by whoever holds the parent, parents first, and all of it again when a parent changes', () => {
    const first = plan(file(passedOn('b', 'a') + entry('a', 'depth: 1')));
    expect(said(first)).toEqual(['add a', 'add b']);
    expect(first.steps[1]?.grant).toMatchObject({ parentGrantId: 'a', issuer: { kind: 'agent', agentId: 'scout' } });
    const standing = done(first);
    const next = plan(file(passedOn('b', 'a') + entry('a', 'depth: 2')), standing);
    expect(next.steps.map((step) => step.do)).toEqual(['add', 'add', 'revoke', 'revoke']);
    expect(next.steps[1]?.grant.parentGrantId).toBe(next.steps[0]?.grant.id);
  });

  it('shows each change in a line, with the reason', () => {
    const standing = done(plan(file(entry('a') + entry('b'))));
    expect(planText(plan(file(entry('a', 'purposes: [read notes]')), standing), NOW)).toMatch(
      /^\+ a-[0-9a-f]{8} {2}human:alice → agent:scout {2}read files:notes\/\*\* {2}for "read notes" {2}\(changed\)\n- a .*\(changed\)\n- b .*\(not in the file\)\n1 to add, 2 to revoke, 0 kept\n$/,
    );
  });
});

describe('a file that could not be applied', () => {
  it.each<[string, string, RegExp]>([
    [
      'a resource of somebody else',
      file(entry('a').replace('actions', 'owner: human:bob, actions')),
      /^grants\.yaml:4: a would be refused \(identity_mismatch\)/,
    ],
    [
      'a parent that may not be passed on',
      file(entry('a') + passedOn('b', 'a')),
      /^grants\.yaml:7: b .*parent_not_delegable.*give it a depth/,
    ],
    ['more than the parent has', file(entry('a', 'depth: 1', 'files:plans') + passedOn('b', 'a')), /capability_not_within_parent/],
    [
      'a parent that is nowhere',
      file(passedOn('b', 'a')),
      /^grants\.yaml:5: a is no entry of this file, and no grant that human:alice holds/,
    ],
    ['an ancestor of itself', file(passedOn('a', 'b') + passedOn('b', 'a')), /own ancestor/],
    ['an id of answers to questions', file(entry('escalation-1')), /^grants\.yaml:4: escalation-1 .*choose another id/],
    ['two entries of one name', file(entry('a') + entry('a')), /^grants\.yaml:7: a is already the entry at grants\.yaml:4/],
  ])('is refused with its line: %s', (_, text, message) => expect(refusal(text)).toMatch(message));
});

describe('an export', () => {
  const exported = (standing: readonly CapabilityGrant[]): string =>
    exportGrants(standing, { name: 'out', namespaceId: 'w1', issuer: alice });

  it('is a file that a plan reads as no change', () => {
    const standing = done(
      plan(file(entry('a', 'purposes: [x, y]') + entry('b', 'expires: 2027-01-01T00:00:00Z') + entry('c', 'metadata: { team: 1 }'))),
    );
    const again = plan(exported(standing), standing);
    expect(said(again)).toEqual(['keep a', 'keep b', 'keep c']);
  });

  it('names a grant by its entry, and the grant that it passes on by its own', () => {
    const held: CapabilityGrant = {
      id: 'from-carol',
      namespaceId: 'w1',
      subject: alice,
      issuer: { kind: 'human', userId: 'carol' },
      capabilities: [
        {
          resource: { namespace: 'files', path: ['notes'], owner: { kind: 'human', userId: 'carol' } },
          actions: ['*'],
          scope: 'descendants',
        },
      ],
      constraints: { delegationDepth: 2 },
      issuedAt: timestampOf(NOW),
    };
    const first = done(plan(file(passedOn('b', 'from-carol')), [held]), [held]);
    const standing = done(plan(file(passedOn('b', 'from-carol', 'human:dave')), first), first);
    const text = exported(standing);
    expect(text).toMatch(/- id: b\n {4}to: human:dave\n[\s\S]*parent: from-carol/);
    expect(said(plan(text, standing))).toEqual([expect.stringMatching(/^keep b-/) as string]);
  });

  it('leaves out what was revoked, and makes an entry taken out of it a grant revoked', () => {
    const standing = done(plan(file(entry('a') + entry('b'))));
    const text = exported(standing);
    const without = text.replace(/ {2}- id: b[\s\S]*$/, '');
    expect(said(plan(without, standing))).toEqual(['keep a', 'revoke b']);
  });

  it('leaves out what an approval granted, and a plan leaves it alone', () => {
    const [a] = done(plan(file(entry('a')))) as [CapabilityGrant];
    const standing = [a, { ...a, id: 'escalation-1', metadata: {} }];
    const again = plan(exported(standing), standing);
    expect(said(again)).toEqual(['keep a']);
    expect(again.others).toBe(1);
  });
});
