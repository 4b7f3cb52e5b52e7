import { Worker } from 'node:worker_threads';
import { err } from '@sharedos/contracts';
import type { ConfinementKind } from '../confinement/confinement.ts';
import type { Refusable } from './file-refusal.ts';
import type { Place } from './place.ts';
import type { TreeJob, TreeJobAnswer, TreeJobMessage } from './tree-job.ts';
import type { TreeCount } from './tree-removal.ts';

/** Threads of one process; each does one job at a time. */
const WORKERS_MAX = 2;
const QUEUED_MAX = 64;
/** What a job may take when it does not bound itself. */
const JOB_MS = 120_000;
/** What a thread may take to load its code, which is no job's fault. */
const START_MS = 60_000;

interface Queued {
  readonly message: TreeJobMessage;
  readonly timeMs: number;
  readonly settle: (answer: TreeJobAnswer) => void;
}

/**
 * Runs work on whole trees beside the service's own thread. A job that does not end in its time ends with its thread, whatever it
 * is in the middle of: that is what keeps a service alive against an expression or a file system that takes for ever.
 */
class Workers {
  readonly #idle: Worker[] = [];
  readonly #queue: Queued[] = [];
  #running = 0;

  run(message: TreeJobMessage, timeMs: number): Promise<TreeJobAnswer> {
    if (this.#queue.length >= QUEUED_MAX) return Promise.resolve({ ok: false, error: 'file_busy' });
    return new Promise((settle) => {
      this.#queue.push({ message, timeMs, settle });
      this.#next();
    });
  }

  #next(): void {
    if (this.#running >= WORKERS_MAX) return;
    const queued = this.#queue.shift();
    if (queued === undefined) return;
    this.#running += 1;
    const idle = this.#idle.pop();
    const fresh = idle === undefined;
    const worker = idle ?? this.#start();
    worker.ref();
    const end = (answer: TreeJobAnswer, reusable: boolean): void => {
      clearTimeout(timer);
      worker.off('message', answered).off('error', failed).off('exit', ended);
      const settle = (): void => {
        this.#running -= 1;
        queued.settle(answer);
        this.#next();
      };
      // Nobody is answered while the thread may still write.
      if (!reusable) return void worker.terminate().then(settle, settle);
      worker.unref();
      this.#idle.push(worker);
      settle();
    };
    const answered = (answer: TreeJobAnswer | 'ready'): void => {
      if (answer !== 'ready') return end(answer, true);
      clearTimeout(timer);
      timer = setTimeout(late, queued.timeMs);
    };
    const failed = (error: unknown): void =>
      end({ defect: error instanceof Error ? (error.stack ?? error.message) : 'the thread failed' }, false);
    const ended = (): void => end({ defect: 'the thread ended' }, false);
    const late = (): void => end({ ok: false, error: 'search_timed_out' }, false);
    let timer = setTimeout(late, fresh ? START_MS : queued.timeMs);
    worker.on('message', answered).on('error', failed).on('exit', ended);
    worker.postMessage(queued.message);
  }

  /** A thread that fails between jobs is not to take the process with it, nor to be given another. */
  #start(): Worker {
    const worker = new Worker(new URL('./tree-worker.ts', import.meta.url));
    worker.on('error', () => this.#forget(worker)).on('exit', () => this.#forget(worker));
    return worker;
  }

  #forget(worker: Worker): void {
    const at = this.#idle.indexOf(worker);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

const workers = new Workers();

/** The tree work of one provider. */
export class TreeJobs {
  readonly #root: string;
  readonly #confinement: ConfinementKind;

  constructor(root: string, confinement: ConfinementKind) {
    this.#root = root;
    this.#confinement = confinement;
  }

  async run<T>(
    { path, above, name, store }: Place,
    work: TreeJob['work'],
    { cancel, timeMs = JOB_MS }: { readonly cancel?: AbortSignal; readonly timeMs?: number } = {},
  ): Promise<Refusable<T>> {
    const job = { root: this.#root, confinement: this.#confinement, path, above, name, store, work };
    const flag = new Int32Array(new SharedArrayBuffer(4));
    const aborted = (): void => void Atomics.store(flag, 0, 1);
    if (cancel?.aborted === true) return err('operation_cancelled');
    cancel?.addEventListener('abort', aborted);
    const answer = await workers.run({ job, cancel: flag }, timeMs);
    cancel?.removeEventListener('abort', aborted);
    if ('defect' in answer) throw new Error(`work on a tree failed: ${answer.defect}`);
    return answer as Refusable<T>;
  }

  count(place: Place): Promise<Refusable<TreeCount>> {
    return this.run(place, { kind: 'count' });
  }

  /** Removes what a writer left behind, or what was moved out of sight. */
  sweep(place: Place): Promise<Refusable<void>> {
    return this.run(place, { kind: 'sweep' });
  }
}
