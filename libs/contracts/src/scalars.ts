import { z } from 'zod';
import { bounded } from './bounded.ts';

/** The wire version of every public contract. */
export const PROTOCOL_VERSION = '1';
export const Version = z.literal(PROTOCOL_VERSION);

/** An opaque identifier: trimmed, 1..256 UTF-16 units, any characters. Compared by code unit. */
export const Id = bounded(z.string().trim(), 1, 256);

/** An identifier that also becomes part of a name (a subject, a stream, a key): its UTF-8 form must be unambiguous. */
export const NameId = Id.refine((id) => id.isWellFormed(), 'must not hold a lone surrogate');

/** The single declared purpose of an operation: trimmed, 1..512, compared exactly. */
export const Purpose = bounded(z.string().trim(), 1, 512);

/** An action name; `*` is the one action that covers every other, and only inside a capability. */
export const Action = bounded(z.string().trim(), 1, 128);

/** SHA-256 as 64 lower-case hex digits. */
export const Hash = z.string().regex(/^[0-9a-f]{64}$/);

/** A tool's name, unique across tool namespaces; not trimmed. */
export const ToolName = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/);

export const Scope = z.enum(['exact', 'descendants']);
export type Scope = z.infer<typeof Scope>;

// Refused characters of a path segment: separators and control characters. Everything else is legal, `*` and `%2e` included.
// oxlint-disable-next-line no-control-regex
const SEGMENT_FORBIDDEN = /[/\\\u0000-\u001f\u007f]/;

/**
 * One segment of a resource path: 1..256 UTF-16 units, no outer whitespace (refused, never trimmed: trimming opens a gap
 * between check and use), not `.` or `..`, no separator and no control character.
 *
 * @see spec/contracts.md §0, "Path segments"
 */
export const Seg = bounded(z.string(), 1, 256)
  .refine((segment) => segment === segment.trim(), 'must not have outer whitespace')
  .refine((segment) => segment !== '.' && segment !== '..', 'must not be a traversal marker')
  .refine((segment) => !SEGMENT_FORBIDDEN.test(segment), 'must not hold a separator or control character');

/** A path of 0..64 segments; the empty path is the root of its resource namespace. */
export const Path = bounded(z.array(Seg), 0, 64);
export type Path = readonly string[];
