import type { Json } from '@sharedos/contracts';

const REASON_LENGTH_MAX = 512;

/** What is recorded of a seat that asked for a human and did not say why. */
export const NO_REASON_GIVEN = 'A human was asked for, and no reason was given.';

/**
 * The reason out of the arguments that a model or harness gave with its ask. Lenient on purpose: whatever else it says, it asked, and
 * going on as if it had not would be worse than an ask without a reason.
 *
 * @param given The arguments as they were read, or `undefined` where they could not be.
 * @see spec/escalation.md §2
 */
export const escalationReason = (given: Json | undefined): string => {
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
  const reason = isObject ? (given as Readonly<Record<string, Json>>)['reason'] : undefined;
  const text = typeof reason === 'string' ? reason.trim() : '';
  return text === '' ? NO_REASON_GIVEN : atMost(text, REASON_LENGTH_MAX).trimEnd();
};

/** Cut between two characters: half a surrogate pair is no text. */
const atMost = (text: string, length: number): string => {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
};
