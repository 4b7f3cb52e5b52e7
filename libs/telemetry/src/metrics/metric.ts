export interface MetricSpec {
  /** As Prometheus shows it; a counter's name gets `_total` there. */
  readonly name: `sharedos_${string}`;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  /** The services that have it; all of them when absent. */
  readonly of?: readonly string[];
  readonly help: string;
}

const AUTHORIZER = ['authorizer'];
const EXECUTOR = ['tool-executor'];
const PROJECTOR = ['audit-projector'];

/**
 * Every metric of the system. Labels take few values: verbs, stable codes, streams, and namespaces. An id of a principal, a grant or
 * a turn is never one. @see docs/metrics.md
 */
export const METRIC = {
  ready: { name: 'sharedos_ready', kind: 'gauge', labels: [], help: '1 while the process may be relied on, 0 while not' },
  process: {
    name: 'sharedos_process_info',
    kind: 'gauge',
    labels: ['service', 'instance', 'version'],
    help: '1, with what this process is',
  },
  memory: { name: 'sharedos_process_resident_bytes', kind: 'gauge', labels: [], help: 'Memory of the process' },
  descriptors: { name: 'sharedos_process_open_files', kind: 'gauge', labels: [], help: 'Files and connections that the process has open' },
  loopDelay: {
    name: 'sharedos_event_loop_delay_seconds',
    kind: 'gauge',
    labels: [],
    help: '99th percentile of how late the event loop was since the last time it was asked',
  },
  defects: { name: 'sharedos_defects', kind: 'counter', labels: [], help: 'Assumptions of ours that broke' },
  requests: {
    name: 'sharedos_requests',
    kind: 'counter',
    labels: ['verb', 'code'],
    help: 'Requests answered; code is ok, or that of the refusal',
  },
  requestSeconds: {
    name: 'sharedos_request_duration_seconds',
    kind: 'histogram',
    labels: ['verb'],
    help: 'From a request to its answer, the wait for a place included',
  },
  limitsHit: { name: 'sharedos_limits_hit', kind: 'counter', labels: ['namespace', 'limit'], help: 'Refusals because a limit was reached' },
  spansDropped: { name: 'sharedos_spans_dropped', kind: 'counter', labels: [], help: 'Spans that never reached the collector' },
  spansExported: { name: 'sharedos_spans_exported', kind: 'counter', labels: [], help: 'Spans that the collector took' },
  streamUsed: {
    name: 'sharedos_stream_used_ratio',
    kind: 'gauge',
    labels: ['stream'],
    help: 'How full a stream of this service is, 0 to 1; 0 for one without a bound',
  },

  decisions: {
    name: 'sharedos_decisions',
    kind: 'counter',
    labels: ['outcome', 'reason'],
    of: AUTHORIZER,
    help: 'Decisions in open turns, by what was decided and why',
  },
  decisionsUnavailable: {
    name: 'sharedos_decisions_unavailable',
    kind: 'counter',
    labels: ['reason'],
    of: AUTHORIZER,
    help: 'Denials because nobody could find out: not counted among the decisions',
  },
  foldPosition: {
    name: 'sharedos_log_fold_position',
    kind: 'gauge',
    labels: [],
    of: AUTHORIZER,
    help: 'Position up to which the log is folded',
  },
  foldLag: {
    name: 'sharedos_log_fold_lag',
    kind: 'gauge',
    labels: [],
    of: AUTHORIZER,
    help: 'Positions by which the fold is behind the newest that an opening turn had to see',
  },
  usageOpen: {
    name: 'sharedos_usage_open',
    kind: 'gauge',
    labels: [],
    of: AUTHORIZER,
    help: '1 while the counters of bounded grants answer',
  },
  usageEpoch: {
    name: 'sharedos_usage_epoch_info',
    kind: 'gauge',
    labels: ['epoch'],
    of: AUTHORIZER,
    help: '1, with the epoch of the counters',
  },
  usageRebuilds: {
    name: 'sharedos_usage_rebuilds',
    kind: 'counter',
    labels: [],
    of: AUTHORIZER,
    help: 'Times that this process began to rebuild the counters from the ledger',
  },

  turns: { name: 'sharedos_turns', kind: 'counter', labels: ['status'], of: EXECUTOR, help: 'Turns that this process ended' },
  turnsRefused: {
    name: 'sharedos_turns_refused',
    kind: 'counter',
    labels: ['code'],
    of: EXECUTOR,
    help: 'Requests that never became a turn',
  },
  turnSeconds: {
    name: 'sharedos_turn_duration_seconds',
    kind: 'histogram',
    labels: [],
    of: EXECUTOR,
    help: 'From the claim of a turn to its published answer',
  },
  turnsRunning: { name: 'sharedos_turns_running', kind: 'gauge', labels: [], of: EXECUTOR, help: 'Requests in the hands of this process' },
  queueDepth: {
    name: 'sharedos_queue_depth',
    kind: 'gauge',
    labels: ['namespace'],
    of: EXECUTOR,
    help: 'Requests in the queue, those in hand included; every executor reports the same',
  },
  queueAge: {
    name: 'sharedos_queue_age_seconds',
    kind: 'gauge',
    labels: [],
    of: EXECUTOR,
    help: 'Age of the oldest request in the queue, one in hand included',
  },
  effectsUnknown: {
    name: 'sharedos_effects_unknown',
    kind: 'counter',
    labels: [],
    of: EXECUTOR,
    help: 'Calls of interrupted turns that may or may not have had their effect',
  },

  ledgerPending: {
    name: 'sharedos_ledger_pending',
    kind: 'gauge',
    labels: [],
    of: PROJECTOR,
    help: 'Records of the ledger whose audit records are not published yet',
  },
  ledgerRecords: {
    name: 'sharedos_ledger_records',
    kind: 'counter',
    labels: ['type'],
    of: PROJECTOR,
    help: 'Records of the ledger that this process forwarded',
  },
  projectionPosition: {
    name: 'sharedos_projection_position',
    kind: 'gauge',
    labels: [],
    of: PROJECTOR,
    help: 'Audit record up to which the read model is folded',
  },
  projectionLag: {
    name: 'sharedos_projection_lag',
    kind: 'gauge',
    labels: [],
    of: PROJECTOR,
    help: 'Audit records that the read model does not show yet',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricName = keyof typeof METRIC;
type Of<Kind extends MetricSpec['kind']> = { [M in MetricName]: (typeof METRIC)[M]['kind'] extends Kind ? M : never }[MetricName];
export type CounterName = Of<'counter'>;
export type GaugeName = Of<'gauge'>;
export type HistogramName = Of<'histogram'>;

type Texts<Labels extends readonly string[]> = readonly [...{ [At in keyof Labels]: string }];
/** One text for each label of a metric, in its order. */
export type LabelValues<M extends MetricName> = Texts<(typeof METRIC)[M]['labels']>;

/** The metrics that a service has. */
export const metricsOf = (service: string): readonly MetricName[] =>
  (Object.entries(METRIC) as [MetricName, MetricSpec][])
    .filter(([, { of }]) => of === undefined || of.includes(service))
    .map(([name]) => name);
