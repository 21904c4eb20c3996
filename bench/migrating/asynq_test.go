package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example_asynqBefore() {
	redis, closeRedis := openRedis()
	defer closeRedis()
	client := asynq.NewClient(redis)
	defer client.Close()
	for range 2 {
		_, err := client.Enqueue(asynq.NewTask("visit", []byte("/cat")), asynq.Queue("urgent"), asynq.Unique(time.Hour), asynq.MaxRetry(4))
		fmt.Println(errors.Is(err, asynq.ErrDuplicateTask))
	}
	server := asynq.NewServer(redis, asynq.Config{Concurrency: 4, Queues: map[string]int{"urgent": 6, "normal": 1}, LogLevel: asynq.FatalLevel})
	check(server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return visit(ctx, Visit{string(t.Payload())}) })))
	defer server.Shutdown()
	fmt.Println("visited", <-visited)
	// Output:
	// false
	// true
	// visited /cat
}

func Example_asynqAfter() {
	ctx, _, store, closeFile := openSQLite()
	defer closeFile()
	visits := core.Must(durable.New(store, Visit.Page, visit, durable.Options{
		MaxConcurrency: 4, MaxAttempts: 5, Lanes: []core.Lane{{Name: "urgent"}, {Name: "normal"}},
	}))
	defer visits.Close()
	urgent := visits.With(durable.ItemOptions{Lane: "urgent", Unique: "/cat", UniqueFor: time.Hour})
	for range 2 {
		_, added, err := urgent.EnqueueUnique(ctx, Visit{"/cat"})
		fmt.Println(added, err)
	}
	go visits.Run(ctx)
	fmt.Println("visited", <-visited)
	// Output:
	// true <nil>
	// false <nil>
	// visited /cat
}

// openRedis starts a Redis in this process.
func openRedis() (asynq.RedisClientOpt, func()) {
	server := core.Must(miniredis.Run())
	return asynq.RedisClientOpt{Addr: server.Addr()}, server.Close
}

// openSQLite opens a database in a new file, and a store in it.
func openSQLite() (context.Context, *sqlitewriter.Writer, durable.Store, func()) {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "migrating"))
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "pages.db"), sqlitewriter.Options{}))
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	return ctx, w, store, func() {
		w.Close()
		os.RemoveAll(dir)
	}
}
