import { ToolSettingsEvent } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { given } from './testing/given.ts';
import { type ToolSelectionCommand, toolSelection } from './tool-selection.ts';

const update = (changes: ToolSelectionCommand['update'], whenUnset: readonly string[] = ['files']): ToolSelectionCommand => ({
  type: 'UpdateToolNamespaces',
  update: changes,
  whenUnset,
});
const set = (...enabled: string[]): ToolSettingsEvent => ({ type: 'ToolNamespacesSet', enabled });

describe('the selection of tool namespaces', () => {
  it('starts from what the operator switched on', () =>
    given(toolSelection, [])
      .when(update({ enable: ['repo'] }))
      .thenEvents(set('files', 'repo')));
  it('is recorded even when it equals that, so that a later default does not change it', () =>
    given(toolSelection, [])
      .when(update({ enable: ['files'] }))
      .thenEvents(set('files')));
  it('stands by itself from then on', () =>
    given(toolSelection, [set('repo')])
      .when(update({ disable: ['repo'] }, ['files']))
      .thenEvents(set()));
  it('does not change by what it is already', () => {
    given(toolSelection, [set('files')])
      .when(update({ enable: ['files'] }))
      .thenNothing();
    given(toolSelection, [set('files')])
      .when(update({ disable: ['repo'] }))
      .thenNothing();
  });
  it('is refused with more names than it may hold', () => {
    const many = Array.from({ length: 256 }, (_, n) => `n${n}`);
    given(toolSelection, [])
      .when(update({ enable: many }))
      .thenRefused({ code: 'too_many_tool_namespaces' });
    given(toolSelection, [set(...many)])
      .when(update({ enable: ['one-more'] }))
      .thenRefused({ code: 'too_many_tool_namespaces' });
  });
  it('makes events that meet their contract', () => expect(ToolSettingsEvent.parse(set('files'))).toEqual(set('files')));
});
