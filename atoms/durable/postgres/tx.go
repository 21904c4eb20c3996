package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrIsolation means that a transaction of the caller is not READ COMMITTED. In others the
// order of a key, or its next item, could be lost.
var ErrIsolation = errors.New("postgres: the transaction must be read committed")

// within runs the statements that fill adds in the transaction of the caller.
func (s *Store) within(ctx context.Context, tx pgx.Tx, fill func(p *pipeline)) error {
	p := &pipeline{Store: s}
	var isolation string
	p.rows(func(rows pgx.Rows) error {
		if err := rows.Scan(&isolation); err != nil || isolation == "read committed" {
			return err
		}
		return fmt.Errorf("%w, not %s", ErrIsolation, isolation)
	}, "select current_setting('transaction_isolation')")
	fill(p)
	if err := tx.SendBatch(ctx, &p.Batch).Close(); err != nil {
		if errors.Is(err, ErrIsolation) {
			return err
		}
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}
