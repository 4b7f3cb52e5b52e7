import { describe, expect, it } from 'vitest';
import { CAPSULE_CODES, checkCapsule, previewCapsule } from './capsule.ts';
import { sha256 } from './canonical.ts';

const item = (content: string, more: object = {}) => ({ kind: 'freeform', label: 'Note', content, sha256: sha256(content), ...more });
const capsule = (more: object = {}) => ({ objective: 'Draft', summary: 'What is known', items: [item('text')], limitations: [], ...more });

const FAULTS: readonly (readonly [code: string, what: string, value: unknown])[] = [
  ['context_invalid', 'what is no JSON', capsule({ summary: () => '' })],
  ['context_invalid', 'a list', []],
  ['context_invalid', 'a key of another contract', capsule({ grants: [] })],
  ['context_too_large', 'more than 128 KiB', capsule({ summary: 'x'.repeat(131_073) })],
  ['context_objective_mismatch', 'another objective', capsule({ objective: 'Delete' })],
  ['context_summary_invalid', 'a blank summary', capsule({ summary: ' ' })],
  ['context_summary_invalid', 'a summary padded past its bound', capsule({ summary: `a${' '.repeat(2_000)}` })],
  ['context_items_invalid', 'thirteen items', capsule({ items: Array.from({ length: 13 }, () => item('a')) })],
  ['context_limitations_invalid', 'no limitations at all', { objective: 'Draft', summary: 's', items: [] }],
  ['context_item_invalid', 'an item that is text', capsule({ items: ['text'] })],
  ['context_item_kind_invalid', 'an unknown kind', capsule({ items: [item('a', { kind: 'grant' })] })],
  ['context_item_label_invalid', 'a long label', capsule({ items: [item('a', { label: 'l'.repeat(121) })] })],
  ['context_item_content_invalid', 'blank content', capsule({ items: [item('  ')] })],
  ['context_content_too_large', 'content past 96 KiB together', capsule({ items: [item('a'.repeat(60_000)), item('b'.repeat(40_000))] })],
  ['context_source_forbidden', 'an environment file', capsule({ items: [item('a', { sourcePath: 'src\\.ENV.local' })] })],
  ['context_source_forbidden', 'a private key', capsule({ items: [item('a', { sourcePath: '.ssh/id_ed25519' })] })],
  ['context_source_forbidden', 'a file of secrets', capsule({ items: [item('a', { sourcePath: 'config/secrets.json' })] })],
  ['context_secret_detected', 'a key header', capsule({ items: [item('-----BEGIN OPENSSH PRIVATE KEY-----')] })],
  ['context_secret_detected', 'a key and its value', capsule({ items: [item('API_KEY = "abcdefghijkl"')] })],
  ['context_hash_mismatch', 'the hash of other content', capsule({ items: [item('a', { sha256: sha256('b') })] })],
  ['context_limitation_invalid', 'a blank limitation', capsule({ limitations: [''] })],
];

describe('a context capsule', () => {
  it('is accepted with its texts trimmed', () => {
    expect(checkCapsule(capsule({ objective: ' Draft ' }), 'Draft')).toMatchObject({ ok: true, value: { objective: 'Draft' } });
  });

  it.each(FAULTS)('is refused as %s for %s', (code, _what, value) => {
    expect(checkCapsule(value, 'Draft')).toEqual({ ok: false, error: code });
  });

  it('has every code of its specification refused somewhere above', () => {
    expect([...new Set(FAULTS.map(([code]) => code))].toSorted()).toEqual([...CAPSULE_CODES].toSorted());
  });

  it.each(['secretsmith/a.txt', 'id_rsa/readme.md', 'my.env', 'secrets/a.txt'])(
    'may come from %s, which only looks forbidden',
    (sourcePath) => {
      expect(checkCapsule(capsule({ items: [item('a', { sourcePath })] }), 'Draft').ok).toBe(true);
    },
  );

  it('is previewed without its content, and without what is malformed', () => {
    const preview = previewCapsule(capsule({ items: [item('hidden', { sourcePath: 'a.md' }), 'text'], limitations: ['l', 3] }));
    expect(preview).toEqual({
      summary: 'What is known',
      limitations: ['l'],
      items: [{ kind: 'freeform', label: 'Note', sourcePath: 'a.md', contentBytes: 6, sha256: sha256('hidden') }],
    });
    expect(JSON.stringify(preview)).not.toContain('hidden"');
    expect(previewCapsule({ items: [] })).toBeUndefined();
  });
});
