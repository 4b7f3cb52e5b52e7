import { type Address, canonicalJson, sameAddress } from '@sharedos/contracts';
import type { Bag, Case, Step } from '../runner/case.ts';
import type { Observed } from '../runner/observed.ts';
import type { Violation } from '../runner/expectations.ts';
import { type Target, embedded } from '../runner/target.ts';
import { BY_DESIGN } from './by-design.ts';
import { cannotRun } from './cannot-run.ts';
import { perform } from './perform.ts';
import { HOST, type ServicesSystem, startServices } from './system.ts';
import { ServicesWorld } from './world.ts';

/** The services, until they are stopped. */
export interface ServicesTarget extends Target {
  stop(): Promise<void>;
}

const prefixOf = (index: number): string => `case-${index}-`;

/** Starts the services for some cases. Each turn is asked for by its own principal, whom the broker has to know from the start. */
export const servicesTarget = async (cases: readonly Case[]): Promise<ServicesTarget> => {
  const prefixes = new Map(cases.map((one, index) => [one.id, prefixOf(index)]));
  const system: ServicesSystem = await startServices(cases.flatMap((one) => requestersOf(one, prefixes.get(one.id) as string)));
  return {
    name: 'services',
    cannotRun,
    byDesign: BY_DESIGN,
    stage: async (one) => {
      const world = new ServicesWorld(system, one, prefixes.get(one.id) as string);
      await world.begin();
      const inProcess = embedded.cannotRun(one) === undefined ? await embedded.stage(one) : undefined;
      const differing: Violation[] = [];
      return {
        counter: (grantId) => grantId,
        perform: async (step) => {
          const came = await perform(world, step);
          const wanted = (await inProcess?.perform(step)) ?? new Map<string, Observed>();
          for (const [id, observed] of wanted) {
            const [there, here] = [answerOf(came.get(id) as Observed), answerOf(observed)];
            if (there !== here) differing.push({ step: id, field: 'the answer in process', wanted: here, came: there });
          }
          return came;
        },
        differing: () => differing,
      };
    },
    stop: () => system.stop(),
  };
};

/** Whoever speaks for itself in a case: who asks for a turn, and whose question is read. */
const requestersOf = ({ world, steps }: Case, prefix: string): { readonly namespaceId: string; readonly principal: Address }[] => {
  const all = steps.flatMap((step) => (step.op === 'parallel' ? (step.input?.['steps'] as Step[]) : [step]));
  const speakers = all.flatMap(({ op, as, input }) => {
    const { namespaceId, actor, authority, owner }: Bag = { ...(world['context'] as Bag), ...as };
    const isAsOther = op === 'runTurn' && !sameAddress(actor as Address, input?.['agent'] as Address);
    const speakers: Bag = { runTurn: isAsOther ? HOST : authority, recordEscalation: owner, sendMessage: actor };
    const speaker = speakers[op];
    return speaker === undefined ? [] : [{ namespaceId: prefix + String(namespaceId), principal: speaker as Address }];
  });
  return [...new Map(speakers.map((speaker) => [canonicalJson(speaker), speaker])).values()];
};

/** What a caller acts on in an answer; identifiers, instants and texts are each run's own. */
const ACTED_ON = ['allowed', 'reasonCode', 'matchedGrantId', 'status', 'code', 'tools', 'output', 'started', 'endedBy', 'outcomes'];

/** What of an answer has to be the same wherever a case is run. */
const answerOf = ({ received }: Observed): string => {
  const { calls, reach } = received as { readonly calls?: readonly Bag[]; readonly reach?: readonly unknown[] };
  const acted = (bag: Bag): Bag => Object.fromEntries(ACTED_ON.filter((key) => bag[key] !== undefined).map((key) => [key, bag[key]]));
  const { started, ...answer } = acted(received);
  return canonicalJson({
    ...answer,
    // A deadline of milliseconds may pass before the runtime is entered: over services opening a turn takes some of them.
    ...(started === undefined || answer['status'] === 'cancelled' ? {} : { started }),
    ...(calls === undefined ? {} : { calls: calls.map((call) => ({ ...acted(call), ...pick(call, 'nothingFound') })) }),
    ...(reach === undefined ? {} : { reach: reach.map((entry) => canonicalJson(entry)).toSorted() }),
  });
};

const pick = (bag: Bag, key: string): Bag => (bag[key] === undefined ? {} : { [key]: bag[key] });
