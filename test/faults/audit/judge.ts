import { trustedKeys, verifyExport } from '@sharedos/client';
import type { SignatureCheck } from '@sharedos/contracts';
import type { LocalStack } from '@sharedos/testing';
import type { Finding } from '../finding.ts';
import { flipBytes } from './flipped-bytes.ts';
import type { ReadModelFile } from './read-model.ts';
import { NAMESPACES } from './writers.ts';

export interface Facts {
  /** Namespace and id of every record that was acknowledged. */
  readonly written: readonly string[];
  /** How each message that cannot be read must be named. */
  readonly unreadable: readonly string[];
  /** Messages that the stream of records holds. */
  readonly stored: number;
  /** What the projectors printed. */
  readonly lines: readonly string[];
  readonly models: Readonly<Record<string, ReadModelFile>>;
  /** The one that was built from the beginning when all was over. */
  readonly rebuilt: ReadModelFile;
  readonly publishedByRebuild: readonly string[];
  readonly keys: LocalStack['sealKeys'];
}

/** Lines of records, and as many of heads, of which every byte is flipped. */
const FLIPPED_LINES = 3;

/** Holds what the projectors have against what was acknowledged and what the streams hold. No projector is asked. */
export const judge = async (facts: Facts): Promise<{ readonly flips: number; readonly findings: readonly Finding[] }> => {
  const check = trustedKeys(facts.keys.map(({ keyId, publicKey }) => `${keyId}:${publicKey}`).join(','));
  const proof = await proofOf(facts.rebuilt, check);
  const models = Object.entries(facts.models);
  return {
    flips: proof.flips,
    findings: [
      {
        rule: 'no record is missing in a read model',
        contradictions: models.flatMap(([name, model]) => missing(name, model, facts.written)),
      },
      { rule: 'no record is in a read model twice', contradictions: models.flatMap(([name, model]) => doubled(name, model)) },
      {
        rule: 'nothing is in a read model that was not recorded',
        contradictions: models.flatMap(([name, model]) => madeUp(name, model, facts.written)),
      },
      {
        rule: 'every message of the stream has its place in the chain, but those that cannot be read',
        contradictions: models.flatMap(([name, model]) => unlinked(name, model, facts)),
      },
      { rule: 'the read models are byte for byte the rebuilt one', contradictions: await different(facts) },
      {
        rule: 'a rebuild publishes nothing to any subject of the system',
        contradictions: facts.publishedByRebuild.filter((subject) => subject.startsWith('sharedos.')),
      },
      {
        rule: 'what cannot be read is parked and named',
        contradictions: facts.unreadable.filter((name) => !facts.lines.some((line) => isParked(line, name))),
      },
      { rule: 'the chain of every namespace is sound and signed to its end', contradictions: proof.unsound },
      { rule: 'a flipped bit in any byte of a record or a head is found at its line', contradictions: proof.unfound },
    ],
  };
};

const missing = (name: string, model: ReadModelFile, written: readonly string[]): readonly string[] => {
  const shown = new Set(model.shown());
  return written.filter((record) => !shown.has(record)).map((record) => `${record} in ${name}`);
};

const doubled = (name: string, model: ReadModelFile): readonly string[] => {
  const seen = new Set<string>();
  return model.shown().flatMap((record) => {
    if (seen.has(record)) return [`${record} in ${name}`];
    seen.add(record);
    return [];
  });
};

const madeUp = (name: string, model: ReadModelFile, written: readonly string[]): readonly string[] => {
  const known = new Set(written);
  return model.shown().flatMap((record) => (known.has(record) ? [] : [`${record} in ${name}`]));
};

const unlinked = (name: string, model: ReadModelFile, { stored, unreadable }: Facts): readonly string[] => {
  const expected = stored - unreadable.filter((what) => what.startsWith('audit')).length;
  const links = model.links();
  return links === expected ? [] : [`${name} has ${links} links, and the stream ${expected} records`];
};

const different = async ({ models, rebuilt }: Facts): Promise<readonly string[]> => {
  const wanted = await rebuilt.bytes();
  const found: string[] = [];
  for (const [name, model] of Object.entries(models)) if (!wanted.equals(await model.bytes())) found.push(name);
  return found;
};

const isParked = (line: string, name: string): boolean => line.includes('"event":"parked"') && line.includes(`${name}:`);

const proofOf = async (
  model: ReadModelFile,
  check: SignatureCheck,
): Promise<{ readonly flips: number; readonly unsound: readonly string[]; readonly unfound: readonly string[] }> => {
  const unsound: string[] = [];
  const unfound: string[] = [];
  let flips = 0;
  for (const namespaceId of NAMESPACES) {
    const lines = model.exported(namespaceId);
    const verdict = await verifyExport(lines, check);
    if (!verdict.sound || verdict.value.sealed < verdict.value.records) unsound.push(`${namespaceId}: ${JSON.stringify(verdict)}`);
    const flipped = await flipBytes(lines, check, FLIPPED_LINES);
    flips += flipped.flips;
    unfound.push(...flipped.contradictions.map((what) => `${namespaceId}, ${what}`));
  }
  return { flips, unsound, unfound };
};
