import { NAME_BYTES_MAX } from '../confinement/owner-folder.ts';

/** Names that Windows takes for something else: streams, wildcards, devices, and ends it drops. */
const WINDOWS_ALIAS = /[<>:"|?*~]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/** Code points that HFS+ leaves out when it compares names. */
const IGNORED_BY_HFS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
/** What NTFS, too, takes for `.git`: the short name, a stream of it, an end it drops. */
const GIT_FOLDER = /^(?:\.git|git~1)[. ]*(?::.*)?$/i;

/**
 * Whether a segment of a resource path names one file here, exactly as spelled. The contract already refused separators,
 * traversal and control characters; this adds what a file system would fold together or cut, and what is Git's own.
 */
export const isFileName = (segment: string, platform: NodeJS.Platform = process.platform): boolean =>
  // Two strings with different lone surrogates have the same UTF-8 form, so one could be granted and the other read.
  segment.isWellFormed() &&
  Buffer.byteLength(segment) <= NAME_BYTES_MAX &&
  !isGitFolder(segment) &&
  !(platform === 'win32' && WINDOWS_ALIAS.test(segment));

/**
 * Whether a name is, on some file system, that of a repository's own folder. No path of the files plane leads into one: whoever
 * could write there would commit, and whoever could read there would see the history, without any grant over the repository.
 */
export const isGitFolder = (name: string): boolean => GIT_FOLDER.test(name.replace(IGNORED_BY_HFS, ''));
