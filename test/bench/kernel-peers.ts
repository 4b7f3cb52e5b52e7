import { createMongoAbility, subject } from '@casl/ability';
import { StringAdapter, newEnforcer, newModelFromString } from 'casbin';
import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { ACTIONS, pathsOf, projectOf } from './kernel-world.ts';
import { type Times, inTurn } from './processor-rate.ts';

/** Another library at the same question, with everything made ready that it can make ready. */
export interface Peer {
  readonly name: string;
  /** @param grants As many permissions as `authorityOf` gives. */
  prepare(grants: number): Promise<(outcome: 'allow' | 'deny') => PeerWork>;
}

export interface PeerWork {
  readonly work: Times;
  /** The answer to every request, to see that it is the right one. */
  answers(): readonly boolean[];
}

const workOf = <Asked>(asked: readonly Asked[], allows: (asked: Asked) => boolean): PeerWork => ({
  work: inTurn(asked, allows),
  answers: () => asked.map(allows),
});

/** A path prefix is a condition on each of its segments; no grant has a window, a purpose, an owner or an order. */
export const casl: Peer = {
  name: '@casl/ability',
  prepare: async (grants) => {
    const rules = Array.from({ length: grants }, (_, index) => ({
      action: [...ACTIONS],
      subject: 'files',
      conditions: { first: projectOf(index), second: 'docs' },
    }));
    const ability = createMongoAbility(rules);
    return (outcome) =>
      workOf(
        pathsOf(grants, outcome).map(([first, second, third]) => subject('files', { first, second, third })),
        (file) => ability.can('read', file),
      );
  },
};

const CASBIN_MODEL = `
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.act == p.act && keyMatch(r.obj, p.obj)
`;

/** A path is a text and a prefix one with a star. */
export const casbin: Peer = {
  name: 'casbin',
  prepare: async (grants) => {
    const lines = Array.from({ length: grants }, (_, index) => `p, bob, /files/${projectOf(index)}/docs/*, read`);
    const enforcer = await newEnforcer(newModelFromString(CASBIN_MODEL), new StringAdapter(lines.join('\n')));
    return (outcome) =>
      workOf(
        pathsOf(grants, outcome).map((path) => `/files/${path.join('/')}`),
        (path) => enforcer.enforceSync('bob', path, 'read'),
      );
  },
};

/** The policies are parsed before; the folders a file is in are entities, handed over with each question. */
export const cedarWasm: Peer = {
  name: '@cedar-policy/cedar-wasm',
  prepare: async (grants) => {
    const preparsedPolicySetId = `grants-${grants}`;
    const staticPolicies = Array.from(
      { length: grants },
      (_, index) =>
        `permit(principal == Agent::"bob", action in [Action::"read", Action::"list"], resource in Folder::"${projectOf(index)}/docs");`,
    ).join('\n');
    const parsed = cedar.preparsePolicySet(preparsedPolicySetId, { staticPolicies });
    if (parsed.type !== 'success') throw new Error('the policies of the bench do not parse');
    return (outcome) =>
      workOf(pathsOf(grants, outcome).map(cedarCall(preparsedPolicySetId)), (call) => {
        const answer = cedar.statefulIsAuthorized(call);
        return answer.type === 'success' && answer.response.decision === 'allow';
      });
  },
};

const cedarCall =
  (preparsedPolicySetId: string) =>
  ([first = '', second = '', third = '']: readonly string[]): cedar.StatefulAuthorizationCall => {
    const folder = { type: 'Folder', id: `${first}/${second}` };
    const file = { type: 'File', id: `${first}/${second}/${third}` };
    return {
      principal: { type: 'Agent', id: 'bob' },
      action: { type: 'Action', id: 'read' },
      resource: file,
      context: {},
      preparsedPolicySetId,
      entities: [
        { uid: file, attrs: {}, parents: [folder] },
        { uid: folder, attrs: {}, parents: [{ type: 'Folder', id: first }] },
      ],
    };
  };
