/** What a snapshot keeps, by name: the bytes of each section in order. */
export type Sections = Map<string, readonly Uint8Array<ArrayBuffer>[]>;
/** The same as it is read back, each section in memory of its own. */
export type LoadedSections = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

const ROWS_FIRST = 64;
/** Room grows by this much: what is copied on the way stays a small multiple of what is there. */
const GROWTH = 1.5;

/**
 * One number for each row, all in one block of memory: a row costs its bytes and nothing more, the collector has nothing to walk,
 * and a snapshot is a copy. Rows never written hold 0.
 */
export interface Column {
  get(row: number): number;
  set(row: number, value: number): void;
  /** A copy of the first `rows`, as they are now. */
  copy(rows: number): Uint8Array<ArrayBuffer>;
  /** Takes back what {@link Column.copy} gave. The bytes are this column's from now on. */
  load(bytes: Uint8Array<ArrayBuffer>): void;
}

// Two classes that read alike, because one over both kinds of cells is twice as slow at the few lines that all the time goes into.

/** Positions, instants: any number, 8 bytes a row. */
export class Numbers implements Column {
  #cells = new Float64Array(ROWS_FIRST);

  get(row: number): number {
    return row < this.#cells.length ? (this.#cells[row] as number) : 0;
  }

  set(row: number, value: number): void {
    if (row >= this.#cells.length) this.#grow(row + 1);
    this.#cells[row] = value;
  }

  copy(rows: number): Uint8Array<ArrayBuffer> {
    if (rows > this.#cells.length) this.#grow(rows);
    return new Uint8Array(this.#cells.slice(0, rows).buffer);
  }

  load(bytes: Uint8Array<ArrayBuffer>): void {
    this.#cells = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / Float64Array.BYTES_PER_ELEMENT);
  }

  #grow(rows: number): void {
    const grown = new Float64Array(Math.max(rows, Math.ceil(this.#cells.length * GROWTH)));
    grown.set(this.#cells);
    this.#cells = grown;
  }
}

/** Numbers of rows, and small counts: 4 bytes a row. */
export class Rows implements Column {
  #cells = new Uint32Array(ROWS_FIRST);

  get(row: number): number {
    return row < this.#cells.length ? (this.#cells[row] as number) : 0;
  }

  set(row: number, value: number): void {
    if (row >= this.#cells.length) this.#grow(row + 1);
    this.#cells[row] = value;
  }

  copy(rows: number): Uint8Array<ArrayBuffer> {
    if (rows > this.#cells.length) this.#grow(rows);
    return new Uint8Array(this.#cells.slice(0, rows).buffer);
  }

  load(bytes: Uint8Array<ArrayBuffer>): void {
    this.#cells = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / Uint32Array.BYTES_PER_ELEMENT);
  }

  #grow(rows: number): void {
    const grown = new Uint32Array(Math.max(rows, Math.ceil(this.#cells.length * GROWTH)));
    grown.set(this.#cells);
    this.#cells = grown;
  }
}

/** Columns that are kept under their names, all of the same number of rows. */
export const columnSections = (prefix: string, columns: Readonly<Record<string, Column>>, rows: number): Sections =>
  new Map(Object.entries(columns).map(([name, column]) => [`${prefix}.${name}`, [column.copy(rows)]]));

export const loadColumns = (prefix: string, columns: Readonly<Record<string, Column>>, sections: LoadedSections): void => {
  for (const [name, column] of Object.entries(columns)) {
    const bytes = sections.get(`${prefix}.${name}`);
    if (bytes === undefined) throw new RangeError(`a snapshot without ${prefix}.${name}`);
    column.load(bytes);
  }
};
