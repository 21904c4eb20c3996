package sqlitewriter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func temporaryFile() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "sqlitewriter")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "app.db"), func() { os.RemoveAll(dir) }
}

func Example() {
	path, remove := temporaryFile()
	defer remove()
	ctx := context.Background()

	w := core.Must(sqlitewriter.Open(ctx, path, sqlitewriter.Options{}))
	defer w.Close()
	core.Must(w.Exec(ctx, "create table if not exists log(id integer primary key, text text)"))
	var savers sync.WaitGroup
	for i := range 10 {
		savers.Go(func() { // writes that wait at the same time share a transaction
			core.Must(w.Exec(ctx, "insert into log(text) values(?)", fmt.Sprint("hello ", i)))
		})
	}
	savers.Wait() // all rows are on the disk

	countRows := func(ctx context.Context, db *sql.DB) (n int, err error) {
		err = db.QueryRowContext(ctx, "select count(*) from log").Scan(&n)
		return n, err
	}
	n, err := sqlitewriter.Read(ctx, w, "log:rows", countRows) // the next call finds the value in memory
	fmt.Println(n, err)
	// Output: 10 <nil>
}

// All statements of a batch are committed, or none is.
func ExampleWriter_Batch() {
	path, remove := temporaryFile()
	defer remove()
	ctx := context.Background()
	w := core.Must(sqlitewriter.Open(ctx, path, sqlitewriter.Options{}))
	defer w.Close()

	results, err := w.Batch(ctx,
		sqlitewriter.Statement{SQL: "create table users(id integer primary key, name text unique)"},
		sqlitewriter.Statement{SQL: "insert into users(name) values(?)", Args: []any{"Ada"}, Invalidates: []string{"users"}})
	if err != nil {
		panic(err)
	}
	id, err := results[1].LastInsertId()
	fmt.Println(id, err)
	fmt.Println(w.Stats().Groups, "transaction")
	// Output:
	// 1 <nil>
	// 1 transaction
}

// A function reads and writes in a transaction.
func ExampleWriter_Tx() {
	path, remove := temporaryFile()
	defer remove()
	ctx := context.Background()
	w := core.Must(sqlitewriter.Open(ctx, path, sqlitewriter.Options{}))
	defer w.Close()
	core.Must(w.Exec(ctx, "create table accounts(name text primary key, balance int); insert into accounts values('Ada', 100)"))

	withdraw := func(amount int) error {
		return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
			var balance int
			if err := tx.QueryRow(ctx, "select balance from accounts where name='Ada'").Scan(&balance); err != nil {
				return err
			}
			if balance < amount {
				return errors.New("not enough money")
			}
			tx.Invalidate("account:Ada")
			_, err := tx.Exec(ctx, "update accounts set balance=balance-? where name='Ada'", amount)
			return err
		})
	}
	fmt.Println(withdraw(70))
	fmt.Println(withdraw(70))
	// Output:
	// <nil>
	// not enough money
}

// Signals report writes. A signal invalidates a value that Read keeps.
func ExampleOptions_signals() {
	path, remove := temporaryFile()
	defer remove()
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	sqlitewriter.Written.Subscribe(sink, func(s signals.Signal, g sqlitewriter.Group) {
		fmt.Println(s.Name, s.Key, g.Writes)
	})
	w := core.Must(sqlitewriter.Open(ctx, path, sqlitewriter.Options{Name: "app", Sink: sink}))
	defer w.Close()
	core.Must(w.Exec(ctx, "create table t(x)"))
	core.Must(w.Exec(ctx, "insert into t values(1), (2)"))

	read := func() int {
		return core.Must(sqlitewriter.Read(ctx, w, "sum", func(ctx context.Context, db *sql.DB) (n int, err error) {
			err = db.QueryRowContext(ctx, "select sum(x) from t").Scan(&n)
			fmt.Println("loaded", n)
			return n, err
		}))
	}
	read()
	read()
	sink.Raise("cache.invalidate:sum")
	read()
	// Output:
	// write.done app 1
	// write.done app 1
	// loaded 3
	// loaded 3
}
