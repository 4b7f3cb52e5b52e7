import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { auditFindings, isAllowed, refusedLicences } from './packages.mjs';

const lock = JSON.parse(readFileSync(fileURLToPath(new URL('../package-lock.json', import.meta.url)), 'utf8'));

describe('the licence of a package', () => {
  it.each(['MIT', '(MIT OR GPL-3.0-or-later)', '(MIT AND Zlib)', 'BSD-3-Clause AND Apache-2.0'])('may be %s', (licence) =>
    expect(isAllowed(licence)).toBe(true),
  );
  it.each(['GPL-3.0', 'SSPL-1.0', '(MIT AND GPL-3.0)', 'UNLICENSED', ''])('may not be "%s"', (licence) =>
    expect(isAllowed(licence)).toBe(false),
  );
  it('is allowed for each of the lock', () => expect(refusedLicences(lock)).toEqual([]));
  it('is refused where it is another, or none', () =>
    expect(
      refusedLicences({
        packages: {
          '': {},
          'node_modules/a': { license: 'AGPL-3.0' },
          'node_modules/x/node_modules/@s/b': {},
          'node_modules/c': { link: true },
        },
      }),
    ).toEqual(['a: AGPL-3.0', '@s/b: no licence']));
});

describe('known weaknesses', () => {
  const asked = (severity: string) => ({
    metadata: { vulnerabilities: { high: 1 } },
    vulnerabilities: { a: { name: 'a', severity, range: '<2' } },
  });
  it.each(['high', 'critical'])('count when they are %s', (severity) =>
    expect(auditFindings(asked(severity)).weaknesses).toEqual([`a <2: ${severity}`]),
  );
  it('are none that are mild', () => expect(auditFindings(asked('low')).weaknesses).toEqual([]));
  it('are not said to be none where nobody could be asked', () => {
    expect(auditFindings({ message: '405 Method Not Allowed' })).toEqual({ unasked: '405 Method Not Allowed' });
    expect(auditFindings({})).toEqual({ unasked: 'no answer' });
  });
});
