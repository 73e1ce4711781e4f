-- Executions of stories, so that a killed one is resumed and not repeated.
CREATE TABLE runs (
	id      TEXT PRIMARY KEY,
	story   TEXT NOT NULL,
	subject TEXT NOT NULL,
	plan    TEXT NOT NULL,
	owner   TEXT NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER NOT NULL, -- 0 while it runs
	outcome TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_started ON runs (started);
CREATE TABLE steps (
	run   TEXT NOT NULL,
	name  TEXT NOT NULL,
	state TEXT NOT NULL,
	at    INTEGER NOT NULL,
	note  TEXT NOT NULL,
	PRIMARY KEY (run, name)
) WITHOUT ROWID;
