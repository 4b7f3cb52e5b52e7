import { z } from 'zod';
import { ChangeCount, CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

const count = (max: number) => z.int().min(1).max(max);

const fields = {
  /** Decisions of an open turn also leave out what was revoked since it opened. It takes away, never adds. */
  liveRevocation: z.boolean(),
  /** What is derived from a bounded grant may draw on that grant's uses; otherwise such a grant cannot be passed on. */
  sharedBudgets: z.boolean(),
  /** The owner is asked about a tool call that no grant covers, with its arguments; an approval allows that call, once. */
  asksAboutRefusedCalls: z.boolean(),
  /** Live grants that one principal may hold from one issuer, 256 or more; with more, its authority is `grant_limit_exceeded`. */
  grantsPerHolderMax: z.int().min(256).max(100_000),
  /** Turn requests of the namespace that may wait, all principals together. */
  turnsQueuedMax: count(1_000_000),
  /** Turns of the namespace that may run at once. */
  turnsRunningMax: count(100_000),
  /** Requests a second that the services take from the namespace's principals. */
  requestsPerSecondMax: count(1_000_000),
  /** Bytes that the namespace's records may take in any one stream. */
  streamBytesMax: count(Number.MAX_SAFE_INTEGER),
} as const;

/** The settings of a namespace as they are where nothing was ever set. */
export const SETTINGS_DEFAULT = {
  liveRevocation: false,
  sharedBudgets: false,
  asksAboutRefusedCalls: false,
  grantsPerHolderMax: 256,
  turnsQueuedMax: 1_000,
  turnsRunningMax: 256,
  requestsPerSecondMax: 10_000,
  streamBytesMax: 16 * 1024 ** 3,
} as const;

/** Settings of a namespace. One that a record does not state, since it is younger than the record, has its default. */
export const NamespaceSettings = z.strictObject({
  liveRevocation: fields.liveRevocation.default(SETTINGS_DEFAULT.liveRevocation),
  sharedBudgets: fields.sharedBudgets.default(SETTINGS_DEFAULT.sharedBudgets),
  asksAboutRefusedCalls: fields.asksAboutRefusedCalls.default(SETTINGS_DEFAULT.asksAboutRefusedCalls),
  grantsPerHolderMax: fields.grantsPerHolderMax.default(SETTINGS_DEFAULT.grantsPerHolderMax),
  turnsQueuedMax: fields.turnsQueuedMax.default(SETTINGS_DEFAULT.turnsQueuedMax),
  turnsRunningMax: fields.turnsRunningMax.default(SETTINGS_DEFAULT.turnsRunningMax),
  requestsPerSecondMax: fields.requestsPerSecondMax.default(SETTINGS_DEFAULT.requestsPerSecondMax),
  streamBytesMax: fields.streamBytesMax.default(SETTINGS_DEFAULT.streamBytesMax),
});
export type NamespaceSettings = z.infer<typeof NamespaceSettings>;

/** A change of some settings; those it does not state stay as they are. */
export const SettingsPatch = z.strictObject(fields).partial();
export type SettingsPatch = z.infer<typeof SettingsPatch>;

/** All settings as they were from then on, those left as they were included: a later default changes nothing recorded. */
export const SettingsSet = z.strictObject({ type: z.literal('SettingsSet'), settings: NamespaceSettings });
export const SettingsEvent = z.discriminatedUnion('type', [SettingsSet]);
export type SettingsEvent = z.infer<typeof SettingsEvent>;

export const SettingsSetRequest = wireMessage(
  'settings.set/1',
  z.strictObject({ commandId: CommandId, settings: SettingsPatch, expectedVersion: ChangeCount.optional() }),
);
export type SettingsSetRequest = z.infer<typeof SettingsSetRequest.schema>;

export const SettingsGet = wireMessage('settings.get/1', z.strictObject({}));
export type SettingsGet = z.infer<typeof SettingsGet.schema>;

export const SettingsAt = z.strictObject({ settings: NamespaceSettings, version: ChangeCount, revision: Revision });
export type SettingsAt = z.infer<typeof SettingsAt>;
export const SettingsReply = replyMessage('settings.reply/1', SettingsAt);
