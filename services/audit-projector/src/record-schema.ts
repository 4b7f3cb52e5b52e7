/** Changed with the tables below: a database of another version is thrown away and folded again. */
export const SCHEMA_VERSION = 'records/3';

/**
 * `namespace` has the tip of each chain; of its records, the first `letGo` are held no more, and `heldAfter` is the place of the last of those.
 * `record` holds every record of the stream; `copy` marks one whose id was seen before, and `latest` is the latest instant of it and
 * all before it: it only grows, so a time is found by it though records are not in order of their instants. `head` has the name of its
 * namespace and not its key, for heads are read beside the records, and keys follow from the records alone. Each index is one way people
 * look records up, ordered by place, so that a page of any of them reads what it shows and nothing else.
 */
export const SCHEMA = `
CREATE TABLE state (position INTEGER NOT NULL, headsPosition INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
CREATE TABLE head (
  namespace TEXT NOT NULL, position INTEGER NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (namespace, position)
) WITHOUT ROWID;
CREATE TABLE namespace (
  key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, count INTEGER NOT NULL, sequence INTEGER NOT NULL, chain BLOB NOT NULL,
  latest INTEGER NOT NULL, heldAfter INTEGER NOT NULL, letGo INTEGER NOT NULL
);
CREATE TABLE record (
  sequence INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, count INTEGER NOT NULL, chain BLOB NOT NULL, copy INTEGER NOT NULL,
  id TEXT NOT NULL, type TEXT NOT NULL, outcome TEXT NOT NULL, at INTEGER NOT NULL, latest INTEGER NOT NULL,
  trace TEXT NOT NULL, turn TEXT, operation TEXT,
  message TEXT, grantId TEXT, actor TEXT NOT NULL, resource TEXT, reason TEXT, outage INTEGER NOT NULL, used INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX by_count ON record (namespace, count);
CREATE UNIQUE INDEX by_id ON record (namespace, id) WHERE copy = 0;
CREATE INDEX by_time ON record (namespace, latest, sequence);
CREATE INDEX by_trace ON record (namespace, trace, sequence);
CREATE INDEX by_turn ON record (namespace, turn, sequence) WHERE turn IS NOT NULL;
CREATE INDEX by_operation ON record (namespace, operation, sequence) WHERE operation IS NOT NULL;
CREATE INDEX by_message ON record (namespace, message, sequence) WHERE message IS NOT NULL;
CREATE INDEX by_grant ON record (namespace, grantId, sequence) WHERE grantId IS NOT NULL;
CREATE INDEX by_actor ON record (namespace, actor, sequence);
CREATE INDEX by_resource ON record (namespace, resource, sequence) WHERE resource IS NOT NULL;
CREATE INDEX by_kind ON record (namespace, copy, type, outcome, outage, reason, at, sequence);
CREATE INDEX by_used ON record (namespace, grantId) WHERE used = 1;
CREATE INDEX by_reason ON record (namespace, reason, sequence) WHERE reason IS NOT NULL;
`;
