/** One measured figure, as `--json` prints it. A member that has no meaning for a row is `null`. */
export interface Row {
  readonly name: string;
  readonly params: Readonly<Record<string, string | number>>;
  /** The median over the runs. */
  readonly value: number;
  readonly unit: 'µs' | '1/s' | 's' | 'B';
  /** What the same work costs bare, measured in the same runs: the sum of its sequential steps, or the rate of the bare steps. */
  readonly floor: number | null;
  /** `value / floor`. Of a time, small is good; of a rate, great is good. */
  readonly ratio: number | null;
  /** Of a time in µs: the greatest ratio that is good. Of a rate: the least value that is good; of seconds and bytes: the greatest. */
  readonly target: number | null;
  readonly ok: boolean | null;
  /** Least and greatest of the runs. */
  readonly spread: { readonly min: number; readonly max: number; readonly runs: number };
}

export interface RowSpec {
  readonly name: string;
  readonly params?: Row['params'];
  readonly unit: Row['unit'];
  /** One figure per run. */
  readonly values: readonly number[];
  /** One figure per run, of the same runs. */
  readonly floors?: readonly number[];
  readonly target?: number;
}

export const median = (figures: readonly number[]): number => percentile(figures, 50);

/**
 * The figure that `percent` of all do not exceed, by nearest rank: always one that was measured.
 *
 * @throws RangeError when there are none.
 */
export const percentile = (figures: readonly number[], percent: number): number => {
  const sorted = [...figures].sort((a, b) => a - b);
  const found = sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
  if (found === undefined) throw new RangeError('a percentile of nothing');
  return found;
};

export const rowOf = ({ name, params = {}, unit, values, floors, target }: RowSpec): Row => {
  const value = rounded(median(values));
  const floor = floors === undefined ? null : rounded(median(floors));
  const ratio = floor === null ? null : rounded(value / floor);
  const spread = { min: rounded(Math.min(...values)), max: rounded(Math.max(...values)), runs: values.length };
  return { name, params, value, unit, floor, ratio, target: target ?? null, ok: verdict(unit, value, ratio, target), spread };
};

const verdict = (unit: Row['unit'], value: number, ratio: number | null, target: number | undefined): boolean | null => {
  if (target === undefined) return null;
  if (unit === '1/s') return value >= target;
  if (unit !== 'µs') return value <= target;
  return ratio === null ? null : ratio <= target;
};

/** Three digits are more than a shared machine repeats. */
const rounded = (figure: number): number => Number(figure.toPrecision(figure >= 1_000 ? 4 : 3));

const HEAD = ['what', 'value', 'spread', 'floor', 'ratio', 'target', ''] as const;

/** The rows as lines for people. */
export const tableOf = (rows: readonly Row[]): string => {
  const lines = [HEAD, ...rows.map(cellsOf)];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

const cellsOf = (row: Row): readonly string[] => {
  const params = Object.entries(row.params).map(([name, value]) => `${name} ${value}`);
  const target = row.target === null ? '' : targetText(row.unit, row.target);
  return [
    params.length === 0 ? row.name : `${row.name} (${params.join(', ')})`,
    figure(row.value, row.unit),
    `${counted(row.spread.min)}–${counted(row.spread.max)}`,
    row.floor === null ? '' : figure(row.floor, row.unit),
    row.ratio === null ? '' : `${row.ratio} ×`,
    target,
    row.ok === null ? '' : row.ok ? 'met' : 'missed',
  ];
};

const targetText = (unit: Row['unit'], target: number): string => {
  if (unit === 'µs') return `≤ ${target} ×`;
  return unit === '1/s' ? `≥ ${counted(target)}/s` : `≤ ${counted(target)} ${unit}`;
};

const figure = (value: number, unit: Row['unit']): string => (unit === '1/s' ? `${counted(value)}/s` : `${counted(value)} ${unit}`);

/** Thousands are set apart; `toLocaleString` would follow the machine's language. */
const counted = (value: number): string => {
  const [whole = '', fraction] = String(value).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ' ');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
};
