import { expect, it } from 'vitest';
import { isVersionBefore } from './broker-version.ts';

it.each([
  ['2.9.10', '2.10.27', true],
  ['2.10.26', '2.10.27', true],
  ['2.10.27', '2.10.27', false],
  ['2.10.27-RC.1', '2.10.27', false],
  ['2.15.1', '2.10.27', false],
  ['3.0.0', '2.10.27', false],
  ['', '2.10.27', true],
  ['what', '2.10.27', true],
])('a broker of version "%s" before %s: %s', (version, oldest, before) => {
  expect(isVersionBefore(version, oldest)).toBe(before);
});
