import type { Replica } from '@sharedos/bus';
import { SERVICE_NAMES } from '@sharedos/contracts';
import { type Finding, error, warning } from './finding.ts';

/** Clocks further apart than this make instants in records hard to compare. The rules themselves hold: they go by positions. */
const CLOCK_APART_MS = 1_000;
const LAG_MAX = 1_000;

/** @param version Of this command. */
export const checkReplicas = (replicas: readonly Replica[], version: string): readonly Finding[] => [
  ...missing(replicas),
  ...replicas.flatMap((one) => [...notReady(one), ...behind(one), ...clockApart(one)]),
  ...versionsApart(replicas, version),
  ...logsApart(replicas),
];

const nameOf = ({ service, instance }: Replica): string => `${service} ${instance}`;

const missing = (replicas: readonly Replica[]): readonly Finding[] =>
  SERVICE_NAMES.filter((name) => !replicas.some(({ service }) => service === name)).map((name) =>
    error(
      'service_missing',
      `no ${name} answers`,
      `start one, and look at its output: a service that cannot start says why in its last line`,
    ),
  );

const notReady = (one: Replica): readonly Finding[] =>
  one.trouble === undefined
    ? []
    : [error('not_ready', `${nameOf(one)} may not be relied on: ${one.trouble}`, 'see ServiceNotReady in docs/operating.md')];

const behind = (one: Replica): readonly Finding[] =>
  (one.lag ?? 0) <= LAG_MAX
    ? []
    : [
        warning(
          'behind',
          `${nameOf(one)} is ${one.lag} positions behind`,
          one.service === 'authorizer' ? 'see FoldBehind in docs/operating.md' : 'see RecordsLate in docs/operating.md',
        ),
      ];

const clockApart = (one: Replica): readonly Finding[] => {
  const apartMs = Math.max(0, Math.abs(one.clockAheadMs ?? 0) - one.answeredInMs / 2);
  if (apartMs <= CLOCK_APART_MS) return [];
  const which = (one.clockAheadMs ?? 0) > 0 ? 'ahead of' : 'behind';
  return [
    warning(
      'clock_apart',
      `the clock of ${nameOf(one)} is at least ${Math.round(apartMs)} ms ${which} this machine's`,
      'have both follow a time server (chrony, systemd-timesyncd), and see that SHAREDOS_CLOCK_OFFSET_MS is not set',
    ),
  ];
};

const versionsApart = (replicas: readonly Replica[], version: string): readonly Finding[] => {
  const others = replicas.filter((one) => one.version !== version);
  if (others.length === 0) return [];
  return [
    warning(
      'versions_differ',
      `this command is ${version}, and ${others.map((one) => `${nameOf(one)} is ${one.version}`).join(', ')}`,
      'finish the upgrade (docs/operating.md, "Upgrade"), and use the command of the release that runs',
    ),
  ];
};

const logsApart = (replicas: readonly Replica[]): readonly Finding[] => {
  const logs = new Set(replicas.flatMap(({ log }) => (log === undefined ? [] : [log])));
  if (logs.size < 2) return [];
  const where = replicas.flatMap((one) => (one.log === undefined ? [] : [`${nameOf(one)} follows ${one.log}`]));
  return [
    error(
      'logs_apart',
      `the authorizers follow different logs: ${where.join(', ')}`,
      'give all of them the same SHAREDOS_EVENT_STORE, SHAREDOS_EVENTSTORE_URL and SHAREDOS_EVENTSTORE_PREFIX, and start them again',
    ),
  ];
};
