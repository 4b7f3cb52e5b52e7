import { createReadStream } from 'node:fs';
import { open, readFile, rename } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type ProofVerdict, type SharedOS, exportHeader, exportLines, newSealKeys, trustedKeys, verifyExport } from '@sharedos/client';
import { type ChainHead, SealedHead } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Invocation, type Terminal, connected, contextOf, invocationOf, valueOf } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { printable } from '../table.ts';

const PROGRESS_MS = 2_000;

/** Every record of the namespace with its link and the signed heads, as lines of an export. */
async function* proofLines(sharedos: SharedOS, terminal: Terminal): AsyncGenerator<string> {
  yield exportHeader(sharedos.namespaceId);
  let told = performance.now();
  for await (const page of sharedos.audit.pages()) {
    const value = valueOf(page);
    if (value.heldAfter > 0 && value.records[0] !== undefined && value.records[0].count > 1) {
      throw new CommandFailure(
        EXIT.refused,
        'records_not_held',
        `the read model no longer holds the first records (they end at place ${value.heldAfter}): raise SHAREDOS_RECORDS_MAX, or keep exports`,
      );
    }
    yield* exportLines(value);
    if (performance.now() - told < PROGRESS_MS) continue;
    told = performance.now();
    terminal.err(`… up to place ${value.after}\n`);
  }
}

export const exportCommand = (terminal: Terminal): Command =>
  new Command('export')
    .description('All records of the namespace with their proof, as JSON Lines: complete, and verifiable without this system.')
    .argument('<file>', 'where to write it; - for standard output')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos audit export audit.jsonl\n  $ sharedos audit verify --file audit.jsonl --keys keys.txt',
    )
    .action(async (file: string, _: unknown, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const records = await connected(invocation, (sharedos) => written(terminal, file, proofLines(sharedos, terminal)), auditorOf);
      if (file !== '-') invocation.show({ file, records }, `${records} lines in ${printable(file)}\n`);
    });

/** An export that broke off must not look like one: it has its name only when it is whole. */
const written = async (terminal: Terminal, file: string, lines: AsyncIterable<string>): Promise<number> => {
  let count = 0;
  if (file === '-') {
    for await (const line of lines) {
      terminal.out(`${line}\n`);
      count += 1;
    }
    return count;
  }
  const place = resolve(terminal.cwd, file);
  const unfinished = `${place}.unfinished`;
  const handle = await open(unfinished, 'w', 0o600).catch(() => {
    throw usageFailure(`${file} cannot be written`);
  });
  try {
    for await (const line of lines) {
      await handle.write(`${line}\n`);
      count += 1;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(unfinished, place);
  return count;
};

interface VerifyOptions {
  readonly file?: string;
  readonly keys?: string;
  readonly head?: string;
}

export const verifyCommand = (terminal: Terminal): Command =>
  new Command('verify')
    .description('Whether the records are the ones that were made: none changed, removed, put in, moved or cut off.')
    .option('--file <export>', 'an export, without any service; absent, the records of the running system')
    .option('--keys <file>', 'the public keys to believe, as "id:key,…"; absent, those of the context')
    .option('--head <file>', 'a head that was seen before, as "records summary --json" prints it: nothing before it may be missing')
    .addHelpText(
      'after',
      `
Exit code 1, and the number of the first bad record, when they are not. The format is in docs/audit-proof.md.

Examples:
  $ sharedos audit verify
  $ sharedos audit verify --file audit.jsonl --keys keys.txt --head head.json`,
    )
    .action(async (options: VerifyOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const check = await keysOf(invocation, options.keys);
      const remembered = options.head === undefined ? undefined : await headIn(terminal, options.head);
      const verdict =
        options.file === undefined
          ? await connected(invocation, (sharedos) => verifyExport(proofLines(sharedos, terminal), check, remembered), auditorOf)
          : await verifyExport(linesOf(resolve(terminal.cwd, options.file)), check, remembered);
      shown(invocation, verdict);
    });

const auditorOf = (context: { readonly auditor?: string | undefined; readonly defaultPrincipal: string }): string =>
  context.auditor ?? context.defaultPrincipal;

const shown = (invocation: Invocation, verdict: ProofVerdict): void => {
  if (verdict.sound) {
    const { records, sealed, heads, namespaceId } = verdict.value;
    const open = records === 0 ? '' : `; ${heads} signed heads vouch for the first ${sealed}`;
    invocation.show(verdict, `${records} records of ${printable(namespaceId)} are as they were made${open}\n`);
    return;
  }
  const { fault } = verdict;
  const where = fault.kind === 'malformed' ? `line ${fault.line}` : `record ${fault.first}`;
  throw new CommandFailure(EXIT.refused, `proof_${fault.kind}`, `the records are not sound from ${where} on: ${fault.why}`, {
    line: String(fault.line),
    ...(fault.kind === 'malformed'
      ? {}
      : { first: String(fault.first), ...(fault.last === undefined ? {} : { last: String(fault.last) }) }),
  });
};

const keysOf = async (invocation: Invocation, file: string | undefined) => {
  const text =
    file === undefined
      ? (await contextOf(invocation)).sealKeys
      : await readFile(resolve(invocation.terminal.cwd, file), 'utf8').catch(() => {
          throw usageFailure(`${file} cannot be read`);
        });
  if (text === undefined) throw usageFailure('the context names no keys to believe: give them with --keys');
  try {
    return trustedKeys(text.trim());
  } catch (error) {
    throw usageFailure(error instanceof Error ? error.message : 'the keys cannot be read');
  }
};

/** A head by itself, or the summary that it stands in. */
const headIn = async (terminal: Terminal, file: string): Promise<ChainHead> => {
  const text = await readFile(resolve(terminal.cwd, file), 'utf8').catch(() => undefined);
  let value: unknown;
  try {
    value = text === undefined ? undefined : JSON.parse(text);
  } catch {
    value = undefined;
  }
  const inSummary = SealedHead.safeParse((value as { readonly head?: unknown } | undefined)?.head);
  const alone = SealedHead.safeParse(value);
  if (inSummary.success) return inSummary.data.head;
  if (alone.success) return alone.data.head;
  throw usageFailure(`${file} holds no signed head: keep what "sharedos records summary --json" prints`);
};

const linesOf = (place: string): AsyncIterable<string> => {
  const stream = createReadStream(place);
  const lines = createInterface({ input: stream, crlfDelay: Infinity });
  const failed = new Promise<never>((_, reject) => {
    stream.once('error', () => reject(usageFailure(`${place} cannot be read`)));
  });
  failed.catch(() => lines.close());
  return (async function* () {
    const iterator = lines[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([iterator.next(), failed]);
      if (next.done === true) {
        if (stream.errored !== null) await failed;
        return;
      }
      yield next.value;
    }
  })();
};

export const keygenCommand = (terminal: Terminal): Command =>
  new Command('keygen')
    .description('A new key pair of the audit proof: the private one for SHAREDOS_SEAL_KEYS, the public one for whoever verifies.')
    .argument('[id]', 'its name in the heads it signs', `key-${new Date().toISOString().slice(0, 10)}`)
    .addHelpText('after', '\nTo change keys, put the new private one first and leave the public part of the old one behind it.')
    .action((keyId: string, _: unknown, self: Command) => {
      if (!/^[A-Za-z0-9_.-]{1,64}$/.test(keyId)) throw usageFailure(`"${keyId}" is not a key id: letters, digits, _ . - only, at most 64`);
      const keys = newSealKeys(keyId);
      invocationOf(terminal, self).show(keys, `SHAREDOS_SEAL_KEYS=${keys.privateKey}\npublic: ${keys.publicKey}\n`);
    });
