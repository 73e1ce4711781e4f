package ledger

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

//go:embed schema/*.sql
var schema embed.FS

// migration brings the schema from one version to the next.
type migration struct {
	version    int
	name       string
	statements []string
}

// migrations are those of this program, in order. A file is never changed once it
// was released; a change of the schema is another file.
func migrations() []migration {
	names, err := fs.Glob(schema, "schema/*.sql") // in order of their numbers
	if err != nil {
		return nil
	}
	var out []migration
	for i, name := range names {
		text, err := schema.ReadFile(name)
		if err != nil {
			return nil
		}
		out = append(out, migration{version: i + 1, name: name, statements: statements(string(text))})
	}
	return out
}

var comment = regexp.MustCompile(`--[^\n]*`)

// statements splits a file; no statement of ours holds a semicolon or -- in a text.
func statements(text string) []string {
	var out []string
	for _, s := range strings.Split(comment.ReplaceAllString(text, ""), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// migrate applies what is missing, each version in a transaction of its own. Any
// number of members may do it at once.
func (l *Ledger) migrate(ctx context.Context, all []migration) error {
	const create = "CREATE TABLE IF NOT EXISTS schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)"
	err := l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := exec(ctx, tx, create); err != nil {
			return err
		}
		return exec(ctx, tx, "INSERT INTO schema_version (one, version) VALUES (1, 0) ON CONFLICT DO NOTHING")
	})
	if err != nil {
		return fmt.Errorf("preparing the schema: %w", err)
	}
	for _, m := range all {
		err := l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error { return m.apply(ctx, tx) })
		if err != nil {
			return fmt.Errorf("schema %s: %w", m.name, err)
		}
	}
	return l.notNewer(ctx, len(all))
}

func (m migration) apply(ctx context.Context, tx *sql.Tx) error {
	// A write first, so that whoever comes second waits here and sees the result.
	done, err := tx.ExecContext(ctx, "UPDATE schema_version SET version = ? WHERE version = ?", m.version, m.version-1)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	for _, s := range m.statements {
		if err := exec(ctx, tx, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) notNewer(ctx context.Context, known int) error {
	var have int
	err := l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT version FROM schema_version").Scan(&have)
	})
	if err != nil {
		return err
	}
	if have > known {
		return diag.WithHint(fmt.Errorf("%w: it has schema %d, this program knows %d", ErrNewer, have, known), "use the version of Slipway that wrote it, or a later one")
	}
	return nil
}

func exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(ctx, statement, args...)
	return err
}
