import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { NameId } from '../scalars.ts';

/** What makes a command of the management plane the same command when it is sent again. */
export const CommandId = NameId;

/**
 * How many changes a thing has had: 0 for one that was never set. A command that states the version it was written against is
 * refused as `version_conflict` when somebody changed the thing meanwhile; one that states none applies to whatever is there.
 */
export const ChangeCount = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

/** Why something was done, for people; it is recorded and decides nothing. */
export const Because = bounded(z.string().trim(), 1, 512);
