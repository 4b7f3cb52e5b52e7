import { describe, expect, it } from 'vitest';
import type { ReceivedSpan } from './otlp-json.ts';
import { spanTree } from './span-tree.ts';

const span = (
  spanId: string,
  parentSpanId: string | undefined,
  startMs: number,
  endMs: number,
  more: Partial<ReceivedSpan> = {},
): ReceivedSpan => ({
  traceId: 't',
  spanId,
  ...(parentSpanId === undefined ? {} : { parentSpanId }),
  name: `span.${spanId}`,
  service: 'executor',
  instance: '1',
  kind: 'internal',
  startMs,
  endMs,
  attributes: {},
  events: [],
  links: [],
  status: { code: 'unset' },
  ...more,
});

describe('a trace as a tree', () => {
  it('shows children under their parent, in the order they started, with duration and service', () =>
    expect(
      spanTree(
        [span('c', 'a', 3, 4.25, { service: 'authorizer' }), span('b', 'a', 1, 2), span('d', 'b', 1.5, 1.75), span('a', undefined, 0, 10)],
        't',
      ).split('\n'),
    ).toEqual([
      'span.a         10.00 ms  executor',
      '├─ span.b       1.00 ms  executor',
      '│  └─ span.d    0.25 ms  executor',
      '└─ span.c       1.25 ms  authorizer',
    ]));
  it('marks what failed and adds the detail that is asked for', () =>
    expect(
      spanTree([span('a', undefined, 0, 1, { status: { code: 'error' }, attributes: { code: 'no' } })], 't', {
        detail: (each) => String(each.attributes['code']),
      }),
    ).toBe('✗ span.a    1.00 ms  executor  no'));
  it('leaves out other traces', () => expect(spanTree([span('a', undefined, 0, 1, { traceId: 'other' })], 't')).toBe(''));
  it('puts a span whose parent has not arrived at the top', () => expect(spanTree([span('b', 'missing', 0, 1)], 't')).toMatch(/^span\.b /));
  it('shows each span of a loop once', () =>
    expect(spanTree([span('a', 'b', 0, 1), span('b', 'a', 0, 1)], 't').split('\n')).toHaveLength(2));
  it('ends with a count when there are too many', () =>
    expect(spanTree([span('a', undefined, 0, 1), span('b', 'a', 0, 1), span('c', 'a', 0, 1)], 't', { linesMax: 1 })).toMatch(
      /\n… and 2 more spans$/,
    ));
});
