import { hashOf } from '@sharedos/contracts';

/** The name that uses are taken under for one effect of a turn: the same for a retry and for nothing else. @param turn The turn's own. */
export const operationOf = (turn: string, kind: 'admission' | 'call', id = ''): string => hashOf({ parent: turn, kind, id });
