import { NamespaceSettings, type SettingsAt, SettingsPatch } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import { type Terminal, connected, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { naturalNumber } from '../numbers.ts';
import { table } from '../table.ts';

const NAMES = Object.keys(NamespaceSettings.shape);

export const settingsCommand = (terminal: Terminal): Command => {
  const command = new Command('settings').description('What holds for a whole namespace.');

  command
    .command('get')
    .description('All settings of the namespace.')
    .addHelpText('after', '\nExample:\n  $ sharedos settings get')
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ settings }) => valueOf(await settings.get()));
      invocation.show(found, settingsText(found));
    });

  command
    .command('set')
    .argument('<name=value...>', `settings to change: ${NAMES.join(', ')}`)
    .description('Change some settings, and leave the others.')
    .addOption(new Option('--expected-version <n>', 'refuse it when the settings have another version by now').argParser(naturalNumber))
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
    .addHelpText('after', '\nExample:\n  $ sharedos settings set liveRevocation=true grantsPerHolderMax=1000')
    .action(
      async (
        given: readonly string[],
        { expectedVersion, commandId = randomUUID() }: { readonly expectedVersion?: number; readonly commandId?: string },
        self: Command,
      ) => {
        const invocation = invocationOf(terminal, self);
        const patch = patchOf(given);
        const options = { commandId, ...(expectedVersion === undefined ? {} : { expectedVersion }) };
        const set = await connected(invocation, async ({ settings }) =>
          valueOf(await settings.set(patch, options), sameCommand(commandId)),
        );
        invocation.show({ ...set, commandId }, settingsText(set));
      },
    );
  return command;
};

const settingsText = ({ settings, version }: SettingsAt): string =>
  `${table(
    ['SETTING', 'VALUE'],
    Object.entries(settings).map(([name, value]) => [name, String(value)]),
  )}version ${version}\n`;

/** `liveRevocation=true`: the words of a command line as the settings they name. */
export const patchOf = (given: readonly string[]): SettingsPatch => {
  const entries = given.map((text): [string, unknown] => {
    const [name = '', value] = text.split('=', 2);
    if (value === undefined) throw usageFailure(`"${text}" is no setting: write <name>=<value>`);
    if (!NAMES.includes(name)) throw usageFailure(`no setting is called "${name}"; there are ${NAMES.join(', ')}`);
    return [name, value === 'true' ? true : value === 'false' ? false : /^\d+$/.test(value) ? Number(value) : value];
  });
  const patch = SettingsPatch.safeParse(Object.fromEntries(entries));
  if (patch.success) return patch.data;
  const [issue] = patch.error.issues;
  throw usageFailure(`${String(issue?.path[0] ?? 'a setting')} is not set as it must be: ${issue?.message ?? 'wrong'}`);
};
