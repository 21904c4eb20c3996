package sqlitewriter_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// savers is how many goroutines of a child save, each its own items in order.
const savers = 8

// save saves items until the process is killed. Acknowledged is called when an item is committed.
func save(dir string, round int, acknowledged func(item string)) {
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "kill.db"), sqlitewriter.Options{})
	must(err)
	_, err = w.Exec(context.Background(), "create table if not exists log(id integer primary key, text text, twin text)")
	must(err)
	var all sync.WaitGroup
	var mu sync.Mutex
	for saver := range savers {
		all.Go(func() {
			for n := 0; ; n++ {
				item := fmt.Sprintf("%d.%d.%d", round, saver, n)
				_, err := w.Batch(context.Background(),
					sqlitewriter.Statement{SQL: "insert into log(text) values(?)", Args: []any{item}},
					sqlitewriter.Statement{SQL: "update log set twin=text where text=?", Args: []any{item}})
				must(err)
				mu.Lock()
				acknowledged(item)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func must(err error) {
	if err != nil {
		panic(err)
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

// What Batch has returned from survives SIGKILL.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: save, Check: checkSaved}))
}

// The same test fails if a write is acknowledged before the commit.
func TestKillFindsEarlyAcknowledgement(t *testing.T) {
	early := func(dir string, round int, ack func(string)) {
		defer sqlitewriter.BeforeCommit(func(stmts []sqlitewriter.Statement) {
			for _, s := range stmts {
				if len(s.Args) > 0 && s.SQL[:6] == "insert" {
					ack(s.Args[0].(string))
				}
			}
			time.Sleep(10 * time.Millisecond) // most kills come now
		})()
		save(dir, round, func(string) {})
	}
	require.ErrorContains(t, coretest.KillLoop(t, coretest.Kill{Child: early, Check: checkSaved, Rounds: 50}), "lost")
}
