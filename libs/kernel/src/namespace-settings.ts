import { type NamespaceSettings, SETTINGS_DEFAULT, type SettingsEvent, type SettingsPatch, canonicalJson } from '@sharedos/contracts';
import { type Decider, accept, refuse } from './decider.ts';
import { type VersionConflict, versionConflict } from './version-conflict.ts';

export interface SettingsCommand {
  readonly type: 'SetSettings';
  readonly settings: SettingsPatch;
  readonly expectedVersion?: number | undefined;
}

export interface SettingsState {
  readonly settings: NamespaceSettings;
  readonly version: number;
}

/** The settings of a namespace: changed one by one, recorded as a whole. */
export const namespaceSettings: Decider<SettingsState, SettingsCommand, SettingsEvent, VersionConflict> = {
  initial: { settings: SETTINGS_DEFAULT, version: 0 },
  decide: ({ settings: patch, expectedVersion }, { settings: before, version }) => {
    const conflict = versionConflict(expectedVersion, version);
    if (conflict !== undefined) return refuse(conflict);
    const stated = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
    const settings: NamespaceSettings = { ...before, ...stated };
    return canonicalJson(settings) === canonicalJson(before) ? accept([]) : accept([{ type: 'SettingsSet', settings }]);
  },
  evolve: ({ version }, { settings }) => ({ settings, version: version + 1 }),
};
