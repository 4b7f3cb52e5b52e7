import { FilesWorld, NO_SNAPSHOT } from './files/files.fixture.ts';
import { filesProvider } from './files/files-provider.ts';
import { FILES_PLANE } from './files/files-tools.ts';
import { providerContract } from './provider-contract.ts';
import { repoProvider } from './repo/repo-provider.ts';
import { REPO_PLANE } from './repo/repo-tools.ts';
import { RepoWorld } from './repo/repo.fixture.ts';

providerContract('files', () => {
  const world = new FilesWorld();
  world.put('notes/a.txt', 'one');
  return {
    plane: FILES_PLANE,
    provider: filesProvider({ root: world.root }),
    root: world.root,
    seen: () => world.seen(),
    path: ['notes', 'a.txt'],
    inputs: {
      search: { query: 'one' },
      grep: { pattern: 'one' },
      create: { content: 'x' },
      replace: { content: 'x' },
      append: { content: 'x' },
      'snapshot:restore': { snapshotId: NO_SNAPSHOT },
    },
    remove: () => world.remove(),
  };
});

providerContract('repo', () => {
  const world = new RepoWorld();
  world.write('a.txt', 'one');
  return {
    plane: REPO_PLANE,
    provider: repoProvider({ root: world.root }),
    root: world.root,
    seen: () => world.seen(),
    path: ['project'],
    inputs: { stage: { pathspec: [['a.txt']] }, commit: { message: 'first' } },
    remove: () => world.remove(),
  };
});
