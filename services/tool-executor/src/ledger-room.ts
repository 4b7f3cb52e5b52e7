import { type Bus, streamInfo } from '@sharedos/bus';

/** What is kept free for turns that have begun: their records must find room, or nobody could tell what they did. */
const RESERVED = 0.05;
const LOOK_MS = 2_000;
const ANSWER_MS = 1_000;

/** Whether the ledger has less room than is kept for turns that have begun. `max_bytes` of -1 is a stream without a bound. */
export const isShort = (used: number, maxBytes: number): boolean => maxBytes > 0 && used > maxBytes * (1 - RESERVED);

/** How full the ledger is, looked at every so often: new turns need not wait for the answer, and it changes slowly. */
export interface LedgerRoom {
  /** As it was when it was last found out. A ledger that does not answer takes no claims either. */
  readonly isShort: boolean;
  stop(): void;
}

export const watchLedgerRoom = (bus: Bus, onChange: (isShort: boolean) => void): LedgerRoom => {
  let short = false;
  const look = async (): Promise<void> => {
    const info = await streamInfo(bus, 'LEDGER', { timeoutMs: ANSWER_MS });
    if (!info.ok) return;
    const found = isShort(info.value.state.bytes, info.value.config.max_bytes ?? -1);
    if (found === short) return;
    short = found;
    onChange(found);
  };
  void look();
  const timer = setInterval(() => void look(), LOOK_MS);
  return {
    get isShort() {
      return short;
    },
    stop: () => clearInterval(timer),
  };
};
