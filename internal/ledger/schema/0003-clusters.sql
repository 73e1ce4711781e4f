-- Clusters that were made or found. A record is kept whole, as JSON; ca is what a
-- cluster is told from another by.
CREATE TABLE clusters (
	environment TEXT PRIMARY KEY,
	ca          TEXT NOT NULL,
	at          INTEGER NOT NULL,
	record      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_subject ON runs (story, subject);
