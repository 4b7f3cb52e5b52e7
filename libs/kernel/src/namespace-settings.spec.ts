import { NamespaceSettings, SETTINGS_DEFAULT, SettingsEvent, type SettingsPatch } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type SettingsCommand, namespaceSettings } from './namespace-settings.ts';
import { given } from './testing/given.ts';

const change = (settings: SettingsPatch, expectedVersion?: number): SettingsCommand => ({ type: 'SetSettings', settings, expectedVersion });
const live: SettingsEvent = { type: 'SettingsSet', settings: { ...SETTINGS_DEFAULT, liveRevocation: true } };

describe('the settings of a namespace', () => {
  it('are changed one by one and recorded as a whole', () =>
    given(namespaceSettings, [])
      .when(change({ liveRevocation: true }))
      .thenEvents(live));
  it('keep what a change does not state', () =>
    given(namespaceSettings, [live])
      .when(change({ grantsPerHolderMax: 100_000 }))
      .thenEvents({ type: 'SettingsSet', settings: { ...SETTINGS_DEFAULT, liveRevocation: true, grantsPerHolderMax: 100_000 } }));
  it('do not change by what they are already', () => {
    given(namespaceSettings, []).when(change({})).thenNothing();
    given(namespaceSettings, [])
      .when(change({ grantsPerHolderMax: 256 }))
      .thenNothing();
    given(namespaceSettings, [live])
      .when(change({ liveRevocation: true }))
      .thenNothing();
  });
  it.each([0, 2])('are refused to a command for another version: %s', (expected) =>
    given(namespaceSettings, [live])
      .when(change({ liveRevocation: false }, expected))
      .thenRefused({ code: 'version_conflict', found: 1 }),
  );
  it('do not lose a setting to a command that leaves it undefined', () =>
    given(namespaceSettings, [live])
      .when(change({ liveRevocation: undefined }))
      .thenNothing());
  it('have their default where a record is older than they are', () =>
    expect(SettingsEvent.parse({ type: 'SettingsSet', settings: { liveRevocation: true } })).toEqual(live));
  it.each([
    { grantsPerHolderMax: 100_001 },
    { grantsPerHolderMax: 255 },
    { turnsRunningMax: 1.5 },
    { liveRevocation: 1 },
    { audit: false },
  ])('are refused out of their range: %o', (settings) => expect(NamespaceSettings.safeParse(settings).success).toBe(false));
});
