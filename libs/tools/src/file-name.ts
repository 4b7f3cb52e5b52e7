import { NAME_BYTES_MAX } from './owner-folder.ts';

/** Names that Windows takes for something else: streams, wildcards, devices, and ends it drops. */
const WINDOWS_ALIAS = /[<>:"|?*~]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * Whether a segment of a resource path names one file here, exactly as spelled. The contract already refused separators,
 * traversal and control characters; this adds what a file system would fold together or cut.
 */
export const isFileName = (segment: string, platform: NodeJS.Platform = process.platform): boolean =>
  // Two strings with different lone surrogates have the same UTF-8 form, so one could be granted and the other read.
  segment.isWellFormed() && Buffer.byteLength(segment) <= NAME_BYTES_MAX && !(platform === 'win32' && WINDOWS_ALIAS.test(segment));
