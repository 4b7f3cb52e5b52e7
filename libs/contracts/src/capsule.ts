import { z } from 'zod';
import { bounded } from './bounded.ts';
import { sha256 } from './canonical.ts';
import { jsonViolation } from './json.ts';
import { type Result, err, ok } from './result.ts';
import { Hash } from './scalars.ts';

export const CAPSULE_ITEM_KINDS = ['requirement', 'diff', 'file_excerpt', 'error', 'test_output', 'decision', 'freeform'] as const;

export const CAPSULE_BYTES_MAX = 131_072;
export const CAPSULE_CONTENT_BYTES_MAX = 98_304;
const ITEMS_MAX = 12;
const LIMITATIONS_MAX = 12;

export const ContextCapsuleItem = z.strictObject({
  kind: z.enum(CAPSULE_ITEM_KINDS),
  label: bounded(z.string().trim(), 1, 120),
  content: bounded(z.string(), 1),
  sourcePath: bounded(z.string().trim(), 1).optional(),
  sha256: Hash,
});
export type ContextCapsuleItem = z.infer<typeof ContextCapsuleItem>;

/** Bounded context handed over with delegated work: content, never authority. {@link checkCapsule} holds the rules across fields. */
export const ContextCapsule = z.strictObject({
  objective: bounded(z.string().trim(), 1),
  summary: bounded(z.string().trim(), 1, 2_000),
  items: bounded(z.array(ContextCapsuleItem), 0, ITEMS_MAX),
  limitations: bounded(z.array(bounded(z.string().trim(), 1, 500)), 0, LIMITATIONS_MAX),
});
export type ContextCapsule = z.infer<typeof ContextCapsule>;

export const CAPSULE_CODES = [
  'context_invalid',
  'context_too_large',
  'context_objective_mismatch',
  'context_summary_invalid',
  'context_items_invalid',
  'context_limitations_invalid',
  'context_item_invalid',
  'context_item_kind_invalid',
  'context_item_label_invalid',
  'context_item_content_invalid',
  'context_content_too_large',
  'context_source_forbidden',
  'context_secret_detected',
  'context_hash_mismatch',
  'context_limitation_invalid',
] as const;
export type CapsuleCode = (typeof CAPSULE_CODES)[number];

type Bag = Readonly<Record<string, unknown>>;
const isBag = (value: unknown): value is Bag => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Measured before trimming, so that padding cannot hide behind a bound. */
const isText = (value: unknown, max = Infinity): value is string => typeof value === 'string' && value.trim() !== '' && value.length <= max;

const FORBIDDEN_SOURCE = /(?:^|[/\\])(?:(?:\.env|credentials?|secrets?)(?:\.|$)|id_(?:rsa|dsa|ecdsa|ed25519)$)/i;
const SECRET =
  /-----BEGIN (?:(?:RSA|EC|OPENSSH) )?PRIVATE KEY-----|(?:api[_-]?key|access[_-]?token|client[_-]?secret|password)\s*[:=]\s*["']?[a-z0-9_\-/.+=]{12,}/i;

/**
 * Judges a capsule in the order its codes are listed; the first fault answers.
 *
 * @param objective The objective of the delegated task, which the capsule must repeat.
 * @returns The capsule with its texts trimmed. A fault that only an unknown key makes is `context_invalid`.
 * @see spec/contracts.md §8
 */
export const checkCapsule = (value: unknown, objective: string): Result<ContextCapsule, CapsuleCode> => {
  if (jsonViolation(value) !== undefined) return err('context_invalid');
  if (Buffer.byteLength(JSON.stringify(value), 'utf8') > CAPSULE_BYTES_MAX) return err('context_too_large');
  if (!isBag(value)) return err('context_invalid');
  const { items, limitations } = value;
  if (typeof value['objective'] !== 'string' || value['objective'].trim() === '' || value['objective'].trim() !== objective.trim())
    return err('context_objective_mismatch');
  if (!isText(value['summary'], 2_000)) return err('context_summary_invalid');
  if (!Array.isArray(items) || items.length > ITEMS_MAX) return err('context_items_invalid');
  if (!Array.isArray(limitations) || limitations.length > LIMITATIONS_MAX) return err('context_limitations_invalid');
  let contentBytes = 0;
  for (const item of items as unknown[]) {
    if (!isBag(item)) return err('context_item_invalid');
    contentBytes += typeof item['content'] === 'string' ? Buffer.byteLength(item['content'], 'utf8') : 0;
    const fault = itemFault(item, contentBytes);
    if (fault !== undefined) return err(fault);
  }
  if (!limitations.every((limitation) => isText(limitation, 500))) return err('context_limitation_invalid');
  const parsed = ContextCapsule.safeParse(value);
  return parsed.success ? ok(parsed.data) : err('context_invalid');
};

const itemFault = ({ kind, label, content, sourcePath, sha256: stated }: Bag, contentBytes: number): CapsuleCode | undefined => {
  if (!CAPSULE_ITEM_KINDS.some((known) => known === kind)) return 'context_item_kind_invalid';
  if (!isText(label, 120)) return 'context_item_label_invalid';
  if (!isText(content)) return 'context_item_content_invalid';
  if (contentBytes > CAPSULE_CONTENT_BYTES_MAX) return 'context_content_too_large';
  if (sourcePath !== undefined && (!isText(sourcePath) || FORBIDDEN_SOURCE.test(sourcePath.trim()))) return 'context_source_forbidden';
  if (SECRET.test(content)) return 'context_secret_detected';
  return stated === sha256(content) ? undefined : 'context_hash_mismatch';
};

export interface CapsulePreview {
  readonly summary: string;
  readonly limitations: readonly string[];
  readonly items: readonly {
    readonly kind: string;
    readonly label: string;
    readonly sourcePath?: string;
    readonly contentBytes: number;
    readonly sha256: string;
  }[];
}

/** What may be shown of a capsule: never content. Malformed items are left out; nothing usable gives no preview. */
export const previewCapsule = (value: unknown): CapsulePreview | undefined => {
  if (!isBag(value) || typeof value['summary'] !== 'string' || !Array.isArray(value['items'])) return undefined;
  const limitations = Array.isArray(value['limitations']) ? (value['limitations'] as unknown[]) : [];
  const items = value['items'].flatMap((item: unknown) => {
    const parsed = ContextCapsuleItem.safeParse(item);
    if (!parsed.success) return [];
    const { kind, label, sourcePath, content, sha256: digest } = parsed.data;
    const contentBytes = Buffer.byteLength(content, 'utf8');
    return [{ kind, label, ...(sourcePath === undefined ? {} : { sourcePath }), contentBytes, sha256: digest }];
  });
  return { summary: value['summary'], limitations: limitations.filter((limitation) => typeof limitation === 'string'), items };
};
