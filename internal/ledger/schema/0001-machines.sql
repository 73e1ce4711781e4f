-- What is known of machines. A record is kept whole, as JSON; the columns beside
-- it are what is searched for. Times are microseconds since 1970, UTC.
CREATE TABLE changes (
	id  INTEGER PRIMARY KEY AUTOINCREMENT,
	key TEXT NOT NULL UNIQUE, -- chosen by who writes: one key, one change
	at  INTEGER NOT NULL
);
CREATE TABLE machines (
	key    TEXT PRIMARY KEY,
	node   TEXT NOT NULL, -- '' when bound to none
	state  TEXT NOT NULL,
	seen   INTEGER NOT NULL,
	record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX machines_node ON machines (node);
CREATE TABLE names (
	name    TEXT NOT NULL, -- mac:…, serial:…, uuid:…; two machines may claim the same
	machine TEXT NOT NULL,
	PRIMARY KEY (name, machine)
) WITHOUT ROWID;
CREATE INDEX names_machine ON names (machine);
CREATE TABLE bindings ( -- history
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	machine TEXT NOT NULL,
	node    TEXT NOT NULL,
	why     TEXT NOT NULL,
	at      INTEGER NOT NULL
);
CREATE TABLE inventories (
	machine TEXT PRIMARY KEY,
	at      INTEGER NOT NULL,
	report  TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE tickets (
	id        TEXT PRIMARY KEY,
	machine   TEXT NOT NULL,
	node      TEXT NOT NULL,
	state     TEXT NOT NULL, -- live, or how it ended
	issued    INTEGER NOT NULL,
	expires   INTEGER NOT NULL,
	tries     INTEGER NOT NULL,
	max_tries INTEGER NOT NULL,
	grant_    TEXT NOT NULL
) WITHOUT ROWID;
-- The rule that there are never two rights to image one node, once more, where no
-- fault of a program gets past it.
CREATE UNIQUE INDEX tickets_live ON tickets (node) WHERE state = 'live';
CREATE TABLE tokens (
	hash    TEXT PRIMARY KEY, -- of the secret, never the secret
	machine TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX tokens_machine ON tokens (machine);
CREATE TABLE receipts (
	digest  TEXT PRIMARY KEY,
	id      INTEGER NOT NULL, -- order of arrival
	machine TEXT NOT NULL,
	node    TEXT NOT NULL,
	at      INTEGER NOT NULL,
	ok      INTEGER NOT NULL,
	receipt TEXT NOT NULL -- without its ticket
) WITHOUT ROWID;
CREATE INDEX receipts_machine ON receipts (machine, id);
CREATE TABLE events (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	at      INTEGER NOT NULL,
	machine TEXT NOT NULL,
	node    TEXT NOT NULL,
	kind    TEXT NOT NULL,
	code    TEXT NOT NULL,
	text    TEXT NOT NULL
);
