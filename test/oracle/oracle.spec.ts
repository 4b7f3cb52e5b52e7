import { describe, expect, it } from 'vitest';
import { PROPERTIES } from './properties.ts';
import { runProperty, unmet } from './run-property.ts';

/** Worlds for each property: more than 20 000 together. `npm run fuzz -- kernel` runs a million. */
const WORLDS = 2_500;
/** Always the same worlds, so that a failing run repeats exactly; the long run draws new ones. */
const SEED = 20_260_301;

describe('in small colliding worlds', () => {
  it.each(PROPERTIES)('$name', (property) => {
    // A property that never reaches its premise proves nothing.
    expect(unmet(runProperty(property, { worlds: WORLDS, seed: SEED }))).toEqual([]);
  });
});
