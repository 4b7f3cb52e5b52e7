import { invariant } from '@sharedos/kernel';
import { type LoadedSections, Numbers, type Sections } from './columns.ts';

/** Longer than any text that the log can hold, so that every text fits into one block. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/**
 * Texts by row, each added once and never changed: their UTF-8 bytes one after the other in blocks, and one number a row, where
 * the text ends. Nothing but text that JSON writes may be added: it holds no lone surrogate and is never empty.
 */
export class Texts {
  readonly #ends = new Numbers();
  readonly #blocks: Buffer<ArrayBuffer>[] = [];
  #rows = 0;

  /** The rows added so far; the next one gets this number. */
  get rows(): number {
    return this.#rows;
  }

  add(text: string): number {
    const bytes = Buffer.byteLength(text);
    if (bytes > BLOCK_BYTES) throw new RangeError('a text is larger than the log can hold');
    const last = this.#endOf(this.#rows - 1);
    // No text spans two blocks, so one that does not fit begins the next: its end alone says where it starts.
    const start = last + bytes > blockEnd(last) ? blockEnd(last) : last;
    const block = Math.floor(start / BLOCK_BYTES);
    // Zeroed: the rest of a block goes into snapshots.
    (this.#blocks[block] ??= Buffer.alloc(BLOCK_BYTES)).write(text, start % BLOCK_BYTES);
    this.#ends.set(this.#rows, start + bytes);
    this.#rows += 1;
    return this.#rows - 1;
  }

  get(row: number): string {
    const end = this.#endOf(row);
    const before = this.#endOf(row - 1);
    const block = Math.ceil(end / BLOCK_BYTES) - 1;
    const start = Math.max(before, block * BLOCK_BYTES);
    return (this.#blocks[block] as Buffer).toString('utf8', start - block * BLOCK_BYTES, end - block * BLOCK_BYTES);
  }

  /** What is there now, to be kept. Text that is there never changes, so its bytes are shared and not copied. */
  sections(name: string): Sections {
    const used = this.#endOf(this.#rows - 1);
    const blocks = this.#blocks.map((block, index) => block.subarray(0, Math.min(BLOCK_BYTES, used - index * BLOCK_BYTES)));
    return new Map([
      [`${name}.ends`, [this.#ends.copy(this.#rows)]],
      [`${name}.bytes`, blocks],
    ]);
  }

  load(name: string, sections: LoadedSections): void {
    const ends = sections.get(`${name}.ends`);
    const bytes = sections.get(`${name}.bytes`);
    invariant(ends !== undefined && bytes !== undefined, 'a snapshot holds the texts');
    this.#ends.load(ends);
    this.#rows = ends.byteLength / Float64Array.BYTES_PER_ELEMENT;
    this.#blocks.length = 0;
    for (let at = 0; at < bytes.byteLength; at += BLOCK_BYTES) {
      const used = bytes.subarray(at, at + BLOCK_BYTES);
      // The last one is added to.
      const isWhole = used.byteLength === BLOCK_BYTES;
      const block = isWhole ? Buffer.from(used.buffer, used.byteOffset, BLOCK_BYTES) : Buffer.alloc(BLOCK_BYTES);
      if (!isWhole) block.set(used);
      this.#blocks.push(block);
    }
  }

  #endOf(row: number): number {
    return row < 0 ? 0 : this.#ends.get(row);
  }
}

const blockEnd = (at: number): number => (Math.floor(at / BLOCK_BYTES) + 1) * BLOCK_BYTES;
