import { type Bus, type Follow, followStream, streamHead } from '@sharedos/bus';
import {
  type ChainHead,
  type Instant,
  type SealedHead,
  SealedHeadMessage,
  decodeOwnBody,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import type { RecordStore } from './record-store.ts';
import type { SealKeys } from './seal-keys.ts';

/** The subject of a namespace's heads; each is written after the one before, so two writers cannot both go on from one. */
export const sealSubject = (namespaceId: string): string => namespaceSubject('seal', namespaceId, 'head');

export interface SealPorts {
  readonly bus: Bus;
  readonly records: RecordStore;
  readonly keys: SealKeys;
  readonly clock: () => Instant;
  /** How long a record waits for its signature, in milliseconds. */
  readonly intervalMs: number;
  readonly deadlineMs: number;
  /** A head was added to those of the records. */
  readonly onHead: () => void;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly onDefect: (error: unknown, where: string) => void;
}

/** The head that stands at the end of a namespace's subject. */
interface LastHead {
  readonly head: ChainHead;
  readonly position: number;
}

/**
 * Signs where each namespace's chain stands, now and then, and holds every head there is against the records. Each replica
 * computes the same chain from the same stream; whichever comes first writes the head, and the others find that it is theirs.
 */
export class Sealer {
  readonly #ports: SealPorts;
  readonly #last = new Map<string, LastHead>();
  /** Heads on records that this replica has not folded yet. */
  #unchecked: SealedHead[] = [];
  readonly #follow: Follow;
  readonly #timer: NodeJS.Timeout;
  #sealing: Promise<void> = Promise.resolve();
  /** Where the stream of heads ended when this replica first wanted to sign; it signs nothing before it has read them. */
  #toRead: number | undefined;
  #trouble: string | undefined;

  constructor(ports: SealPorts) {
    this.#ports = ports;
    this.#follow = followStream(ports.bus, {
      stream: 'SEALS',
      fromSequence: 1,
      onMessage: ({ sequence, data, subject }) => this.#heard(subject, sequence, data),
      onAlive: () => undefined,
      onDefect: ports.onDefect,
    });
    this.#timer = setInterval(() => this.seal(), ports.intervalMs);
  }

  /** Why the proof cannot be trusted or made, or `undefined`. */
  get trouble(): string | undefined {
    return this.#trouble ?? (this.#follow.alive ? undefined : 'the stream of heads is silent');
  }

  /** Signs what is new. One at a time; a call while one runs waits for it and then signs the rest. */
  seal(): Promise<void> {
    this.#sealing = this.#sealing.then(() => this.#sealAll()).catch((error: unknown) => this.#ports.onDefect(error, 'sealing'));
    return this.#sealing;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.seal();
    await this.#follow.stop();
  }

  async #sealAll(): Promise<void> {
    this.#checkHeard();
    // Records that a head contradicts are not signed over: somebody has to look first.
    if (this.trouble !== undefined || !(await this.#hasReadHeads())) return;
    for (const { namespaceId, count, sequence, chain } of this.#ports.records.tips()) {
      const last = this.#last.get(namespaceId);
      if (count > (last?.head.count ?? 0)) await this.#write(namespaceId, { count, sequence, chain }, last?.position ?? 0);
    }
  }

  /** A replica that is just being built would write heads that there are. */
  async #hasReadHeads(): Promise<boolean> {
    if (this.#toRead === undefined) {
      const head = await streamHead(this.#ports.bus, 'SEALS', { timeoutMs: this.#ports.deadlineMs });
      if (!head.ok) return false;
      this.#toRead = head.value;
    }
    return this.#follow.lastSequence >= this.#toRead;
  }

  async #write(namespaceId: string, tip: Pick<ChainHead, 'count' | 'sequence' | 'chain'>, expected: number): Promise<void> {
    const { bus, keys, clock, deadlineMs, log } = this.#ports;
    const sealed = keys.seal({ version: '1', namespaceId, ...tip, at: timestampOf(clock()) });
    const content = { message: SealedHeadMessage, body: sealed };
    const stored = await bus.publishStored(sealSubject(namespaceId), content, {
      expectedLastSubjectSequence: expected,
      timeoutMs: deadlineMs,
    });
    // Another replica was first, or it is not known: the stream tells which head stands there, and this one learns it by following.
    if (!stored.ok && stored.error.kind !== 'wrong_sequence') log('head not stored', { namespaceId, why: stored.error.kind });
  }

  #heard(subject: string, position: number, data: Uint8Array): void {
    const decoded = decodeOwnBody(SealedHeadMessage, data);
    if (!decoded.ok || sealSubject(decoded.value.head.namespaceId) !== subject) return this.#alarm(`head ${position} cannot be read`);
    const sealed = decoded.value;
    const signed = this.#ports.keys.check(sealed.head, sealed.signature);
    if (signed !== 'valid') return this.#alarm(`head ${position} of ${sealed.head.namespaceId}: ${signed}`);
    this.#last.set(sealed.head.namespaceId, { head: sealed.head, position });
    if (position > this.#ports.records.headsPosition) this.#ports.records.keepHead(sealed, position);
    this.#ports.onHead();
    this.#unchecked.push(sealed);
  }

  #checkHeard(): void {
    const { records } = this.#ports;
    const due = this.#unchecked.filter(({ head }) => head.sequence <= records.position);
    this.#unchecked = this.#unchecked.filter(({ head }) => head.sequence > records.position);
    for (const { head } of due) {
      const here = records.chainAt(head.namespaceId, head.count);
      // Older than what is held: it was checked when it was new.
      if (here === undefined) continue;
      if (here.chain !== head.chain || here.sequence !== head.sequence)
        this.#alarm(`the records of ${head.namespaceId} up to ${head.count} are not the ones that were signed`);
    }
  }

  #alarm(what: string): void {
    if (this.#trouble === undefined) this.#ports.log('proof broken', { what });
    this.#trouble ??= what;
  }
}
