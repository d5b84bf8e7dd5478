package ledger

// The file is marked as ours by SQLite's application id ("FGLG") and carries the
// version of its tables in user_version.
const (
	applicationID = 0x46474c47
	schemaVersion = 3
)

// pageSize is twice to four times SQLite's default. A record takes 0.5 to 2 kB, and
// with fewer, larger pages the tree is rebalanced less often: a third less CPU per
// record than with 4 KiB pages.
const pageSize = 16384

// createTables makes version 1. The table is as narrow as it can be, because every
// column and index costs CPU on every request: a key in order of arrival, the id by
// which people search, and the record itself. All other columns are views, which cost
// nothing until somebody looks.
//
// The key is the time of arrival in nanoseconds since 1970, moved up by a few where
// that is needed to make it unique. A request is written under its key when it opens
// and again, over the same row, when it closes.
const createTables = `
CREATE TABLE records (
	key        INTEGER PRIMARY KEY,
	request_id TEXT NOT NULL,
	record     TEXT NOT NULL
) STRICT;

CREATE INDEX records_by_id ON records (request_id);

CREATE VIEW requests AS
SELECT
	request_id,
	record ->> '$.at'                            AS at,
	record ->> '$.caller'                        AS caller,
	record ->> '$.contract.model'                AS model,
	record ->> '$.contract.endpoint'             AS endpoint,
	record ->> '$.terminal'                      AS terminal,
	record ->> '$.status'                        AS status,
	record ->> '$.elapsed_ms'                    AS elapsed_ms,
	json_array_length(record, '$.attempts')      AS attempts,
	key
FROM records;

CREATE VIEW attempts AS
SELECT
	records.request_id,
	a.value ->> '$.seq'                AS seq,
	a.value ->> '$.group'              AS "group",
	a.value ->> '$.channel'            AS channel,
	a.value ->> '$.provider'           AS provider,
	a.value ->> '$.key'                AS key_name,
	a.value ->> '$.model'              AS model,
	a.value ->> '$.status'             AS status,
	a.value ->> '$.class'              AS class,
	a.value ->> '$.reason'             AS reason,
	a.value ->> '$.scope'              AS scope,
	a.value ->> '$.phase'              AS phase,
	a.value ->> '$.completion'         AS completion,
	a.value ->> '$.cost_usd'           AS cost_usd,
	a.value ->> '$.decision.action'    AS action,
	a.value ->> '$.decision.rule'      AS rule,
	a.value ->> '$.decision.interlock' AS interlock,
	records.key
FROM records, json_each(records.record, '$.attempts') AS a;
`

// createDisagreements makes version 2 of version 1: where candidate policies disagree with
// the one that decides. The key is when the attempt had failed, made unique like that of
// records.
const createDisagreements = `
CREATE TABLE disagreements (
	key          INTEGER PRIMARY KEY,
	request_id   TEXT NOT NULL,
	disagreement TEXT NOT NULL
) STRICT;

CREATE INDEX disagreements_by_id ON disagreements (request_id);
`

// createChanges makes version 3 of version 2: what a hand or a reload has changed. The key
// is when, made unique like that of records.
const createChanges = `
CREATE TABLE changes (
	key    INTEGER PRIMARY KEY,
	change TEXT NOT NULL
) STRICT;
`

// The first versions that have the tables.
const (
	withDisagreements = 2
	withChanges       = 3
)

// insertRow and updateRow write one row. Statements of one row need no statement
// journal; one of many rows, or an upsert, makes SQLite copy every page that it
// touches, which costs more than the calls that it saves.
//
// A key that another process has taken in the same nanosecond is left to it.
const (
	insertRow = "INSERT OR IGNORE INTO records (key, request_id, record) VALUES (?1, ?2, ?3)"
	updateRow = "UPDATE records SET record = ?3 WHERE key = ?1 AND request_id = ?2"

	insertDisagreement = "INSERT OR IGNORE INTO disagreements (key, request_id, disagreement) VALUES (?1, ?2, ?3)"
	insertChange       = "INSERT OR IGNORE INTO changes (key, change) VALUES (?1, ?2)"
)

// These delete the oldest rows before a time, a few at once.
const (
	prune = "DELETE FROM records WHERE key IN" +
		" (SELECT key FROM records WHERE key < ? ORDER BY key LIMIT ?)"
	pruneDisagreements = "DELETE FROM disagreements WHERE key IN" +
		" (SELECT key FROM disagreements WHERE key < ? ORDER BY key LIMIT ?)"
	pruneChanges = "DELETE FROM changes WHERE key IN" +
		" (SELECT key FROM changes WHERE key < ? ORDER BY key LIMIT ?)"
)
