package sqlitewriter_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// savers is how many goroutines of a child save. Each saves its own items in order.
const savers = 8

// save returns a child that saves items until it is killed. It acknowledges each when it is
// committed, or too early.
func save(early bool) func(dir string, round int, acknowledge func(item string)) {
	return func(dir string, round int, acknowledge func(item string)) {
		ctx := context.Background()
		w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "kill.db"), sqlitewriter.Options{}))
		core.Must(w.Exec(ctx, "create table if not exists log(id integer primary key, text text, twin text)"))
		for saver := range savers {
			go func() {
				for n := 0; ; n++ {
					item := fmt.Sprintf("%d.%d.%d", round, saver, n)
					if early {
						acknowledge(item)
					}
					core.Must(w.Batch(ctx,
						sqlitewriter.Statement{SQL: "insert into log(text) values(?)", Args: []any{item}},
						sqlitewriter.Statement{SQL: "update log set twin=text where text=?", Args: []any{item}}))
					if !early {
						acknowledge(item)
					}
				}
			}()
		}
	}
}

// checkSaved checks that all acknowledged items are there, once, in order, and complete.
func checkSaved(dir string, acked []string) error {
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "kill.db"), sqlitewriter.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	var is string
	if err := w.DB().QueryRow("pragma integrity_check").Scan(&is); err != nil || is != "ok" {
		return fmt.Errorf("integrity: %s, %v", is, err)
	}
	if len(acked) == 0 {
		return nil // there may be no table
	}
	rows, err := w.DB().Query("select text, coalesce(twin, '') from log order by id")
	if err != nil {
		return err
	}
	defer rows.Close()
	saved, next := map[string]bool{}, map[[2]int]int{}
	for rows.Next() {
		var item, twin string
		if err := rows.Scan(&item, &twin); err != nil {
			return err
		}
		var round, saver, n int
		if _, err := fmt.Sscanf(item, "%d.%d.%d", &round, &saver, &n); err != nil {
			return err
		}
		if want := next[[2]int{round, saver}]; n != want || twin != item {
			return fmt.Errorf("%s (%s) is there, want number %d", item, twin, want)
		}
		next[[2]int{round, saver}]++
		saved[item] = true
	}
	for _, item := range acked {
		if !saved[item] {
			return fmt.Errorf("%s was acknowledged and is lost", item)
		}
	}
	return rows.Err()
}

// When Batch has returned, its writes survive SIGKILL.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: save(false), Check: checkSaved}))
}

// The same test fails if a write is acknowledged before the commit.
func TestKillFindsEarlyAcknowledgement(t *testing.T) {
	require.ErrorContains(t, coretest.KillLoop(t, coretest.Kill{Child: save(true), Check: checkSaved, Rounds: 50}), "lost")
}
