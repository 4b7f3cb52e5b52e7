import { describe, expect, it } from 'vitest';
import { countReport } from './count.mjs';
import { holds } from './install.mjs';

const file = (status: string, ...tests: string[]) => ({
  name: 'a.spec.ts',
  status,
  assertionResults: tests.map((test, index) => ({ status: test, fullName: `test ${index}` })),
});

describe('counting a test run', () => {
  it('counts each test that passed and each that failed', () =>
    expect(countReport({ testResults: [file('passed', 'passed', 'passed'), file('failed', 'passed', 'failed')] }, 1)).toMatchObject({
      passed: 3,
      failed: 1,
    }));
  it('names what was not run', () =>
    expect(countReport({ testResults: [file('passed', 'passed', 'skipped', 'todo')] }, 0).skipped).toEqual(['test 1', 'test 2']));
  it('counts a file that could not be loaded as one failure', () =>
    expect(countReport({ testResults: [file('failed'), file('passed', 'passed')] }, 1)).toMatchObject({
      passed: 1,
      failed: 1,
      unloaded: ['a.spec.ts'],
    }));
  it('counts a failed run that names no failure as one failure', () =>
    expect(countReport({ testResults: [file('passed', 'passed')] }, 1)).toMatchObject({ passed: 1, failed: 1 }));
  it('counts a run without a report as one failure', () => expect(countReport(undefined, 137)).toMatchObject({ passed: 0, failed: 1 }));
});

describe('deciding whether packages must be installed', () => {
  const lock = {
    packages: {
      '': { version: '0.1.0' },
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'node_modules/other-platform': { version: '1.0.0', integrity: 'sha512-b', optional: true },
    },
  };
  const installed = (packages: object) => JSON.stringify({ packages });

  it('installs when nothing is there', () => expect(holds(lock, undefined)).toBe(false));
  it('installs when a package is missing', () => expect(holds(lock, installed({}))).toBe(false));
  it('installs when a version differs', () =>
    expect(holds(lock, installed({ 'node_modules/a': { version: '1.0.1', integrity: 'sha512-a' } }))).toBe(false));
  it('installs when the content differs under the same version', () =>
    expect(holds(lock, installed({ 'node_modules/a': { version: '1.0.0', integrity: 'sha512-x' } }))).toBe(false));
  it('does not when everything but a package of another platform is there', () =>
    expect(holds(lock, installed({ 'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' } }))).toBe(true));
});
