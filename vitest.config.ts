import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'deploy/**/*.spec.ts',
      'libs/**/src/**/*.spec.ts',
      'services/**/src/**/*.spec.ts',
      'scripts/**/*.spec.ts',
      'test/**/*.spec.ts',
    ],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
