import type { LogPlace } from '@sharedos/testing';
import { NAMESPACE } from '../../support/test-system.ts';
import { type Finding, allHold } from '../finding.ts';
import { cluster } from './cluster.ts';
import { judge } from './judge.ts';
import { readLogFacts } from './log-facts.ts';
import { newEnemy } from './new-enemy.ts';
import { outages } from './outages.ts';
import { type Played, playRounds } from './rounds.ts';
import type { Scene, SceneOptions } from './scene.ts';
import type { Answers, Guard } from './weather.ts';

export const SCENES = { grants: newEnemy, 'grants-outages': outages, 'grants-cluster': cluster } as const;
export type SceneName = keyof typeof SCENES;

export interface GrantsOptions {
  readonly scene: SceneName;
  readonly store: LogPlace;
  readonly seed: number;
  readonly rounds: number;
  readonly without?: Guard | undefined;
}

export interface GrantsReport extends GrantsOptions {
  /** Which server the log was on. */
  readonly log: string;
  /** Rounds that were played: as many as asked, and more where a trouble had not been there by then. */
  readonly played: number;
  /** Turns that were opened, each with one question decided. */
  readonly opened: number;
  /** Answers that were none, by kind, and how often: they allow nothing, and the same was asked again. */
  readonly unavailable: Readonly<Record<string, number>>;
  readonly answers: Readonly<Record<string, Answers>>;
  readonly blows: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

export type Watchers = Pick<SceneOptions, 'onProgress' | 'onLine'>;

const PLAYERS = 48;
const ROUNDS_AFTER = 24;
const PROGRESS_ROUNDS = 500;

const quiet = (): void => undefined;

/** Plays rounds over a system in trouble, some more when it is calm again, and judges them by the log. */
export const runGrants = async (options: GrantsOptions, watchers: Partial<Watchers> = {}): Promise<GrantsReport> => {
  const { onProgress = quiet, onLine = quiet } = watchers;
  const { seed, rounds } = options;
  const startedAt = performance.now();
  const scene = await SCENES[options.scene]({ ...options, onProgress, onLine });
  try {
    onProgress(`playing ${rounds} rounds …`);
    const { ways, answerMs, isEnough } = scene;
    const play = { players: PLAYERS, ways, answerMs, isEnough };
    const during = await playRounds({
      ...play,
      seed,
      rounds,
      onRound: (played) => {
        if (played % PROGRESS_ROUNDS === 0) onProgress(`${played} rounds`);
      },
    });
    await scene.calm();
    onProgress('calm, and some rounds more …');
    const after = await playRounds({ ...play, seed: seed + 1, rounds: ROUNDS_AFTER });
    onProgress('reading the log …');
    const findings = await judged(scene, [during, after]);
    return {
      ...options,
      log: scene.log,
      played: during.rounds + after.rounds,
      opened: during.opened.length + after.opened.length,
      unavailable: Object.fromEntries(during.unavailable),
      answers: scene.answers(),
      blows: scene.blows(),
      findings,
      ok: allHold(findings),
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    await scene.close();
  }
};

const judged = async (scene: Scene, [during, after]: readonly [Played, Played]): Promise<readonly Finding[]> => {
  const log = await scene.openLog();
  try {
    const facts = await readLogFacts(log.store, NAMESPACE);
    const played = { changes: [...during.changes, ...after.changes], opened: [...during.opened, ...after.opened] };
    return [...judge(facts, log.store.storeId, played), ...scene.findings(during.unavailable)];
  } finally {
    await log.close();
  }
};
