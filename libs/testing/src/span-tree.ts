import type { ReceivedSpan } from './otlp-json.ts';

export interface SpanTreeOptions {
  /** Most lines; the rest is counted in a last one. Default 200. */
  readonly linesMax?: number;
  /** What else to show of a span, after its service; nothing when absent. */
  readonly detail?: (span: ReceivedSpan) => string | undefined;
}

const LINES_MAX = 200;

/**
 * Draws one trace as a tree: name, duration, service, and `✗` where a span ended in an error. Children stand under their parent in
 * the order they started; a span whose parent has not arrived stands at the top, and so does one of a loop.
 */
export const spanTree = (spans: readonly ReceivedSpan[], traceId: string, options: SpanTreeOptions = {}): string => {
  const ours = spans.filter((span) => span.traceId === traceId).toSorted(byStart);
  const known = new Set(ours.map((span) => span.spanId));
  const childrenOf = Map.groupBy(ours, (span) =>
    span.parentSpanId !== undefined && known.has(span.parentSpanId) ? span.parentSpanId : '',
  );
  const rows: { readonly label: string; readonly span: ReceivedSpan }[] = [];
  const drawn = new Set<string>();

  const draw = (span: ReceivedSpan, lead: string, branch: string, below: string): void => {
    drawn.add(span.spanId);
    rows.push({ label: `${lead}${branch}${span.status.code === 'error' ? '✗ ' : ''}${span.name}`, span });
    const children = (childrenOf.get(span.spanId) ?? []).filter((child) => !drawn.has(child.spanId));
    for (const [place, child] of children.entries()) {
      const isLast = place === children.length - 1;
      draw(child, lead + below, isLast ? '└─ ' : '├─ ', isLast ? '   ' : '│  ');
    }
  };
  for (const root of childrenOf.get('') ?? []) draw(root, '', '', '');
  for (const span of ours) if (!drawn.has(span.spanId)) draw(span, '', '', '');

  const shown = rows.slice(0, options.linesMax ?? LINES_MAX);
  const width = Math.max(0, ...shown.map(({ label }) => label.length));
  const lines = shown.map(({ label, span }) => {
    const detail = options.detail?.(span);
    return `${label.padEnd(width)}  ${duration(span).padStart(9)}  ${span.service}${detail === undefined ? '' : `  ${detail}`}`;
  });
  if (rows.length > shown.length) lines.push(`… and ${rows.length - shown.length} more spans`);
  return lines.join('\n');
};

const byStart = (a: ReceivedSpan, b: ReceivedSpan): number => a.startMs - b.startMs || b.endMs - a.endMs || (a.spanId < b.spanId ? -1 : 1);

const duration = ({ startMs, endMs }: ReceivedSpan): string => `${(endMs - startMs).toFixed(2)} ms`;
