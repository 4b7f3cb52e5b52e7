import type { AuthorityResolution } from './authority-resolver.ts';
import { SharedWork } from './shared-work.ts';
import type { ToolRegistry } from './tool-registry.ts';

/** What is held for one turn, or for one operation outside any. */
export interface Lease {
  readonly authority: SharedWork<AuthorityResolution>;
  /** Unfiltered: what may be seen, and which families are on, is judged again at each operation. */
  readonly catalogue: SharedWork<ToolRegistry>;
  /** Hash of the catalogue that was last listed here; it goes on the records of calls. */
  listedHash?: string;
}

export const newLease = (): Lease => ({ authority: new SharedWork(), catalogue: new SharedWork() });

/** The leases that are open, by turn key. Opening counts references; the last close drops the lease. */
export class TurnLeases {
  readonly #open = new Map<string, { readonly lease: Lease; references: number }>();

  /** Registered before anything is loaded, so that whoever comes meanwhile joins it. */
  open(key: string): { readonly lease: Lease; readonly close: () => void } {
    const entry = this.#open.get(key) ?? { lease: newLease(), references: 0 };
    this.#open.set(key, entry);
    entry.references += 1;
    let closed = false;
    return {
      lease: entry.lease,
      close: () => {
        if (closed) return;
        closed = true;
        entry.references -= 1;
        // Only this very lease: another one may have been opened under the same key since.
        if (entry.references === 0 && this.#open.get(key) === entry) this.#open.delete(key);
      },
    };
  }

  of(key: string): Lease | undefined {
    return this.#open.get(key)?.lease;
  }
}
