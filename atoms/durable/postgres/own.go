package postgres

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// own has the connections that the store itself has while queues run. So claims, ends and
// heartbeats go on even if bodies take all connections of the caller's pool.
type own struct {
	queues       int           // that run
	turns, beats *pgxpool.Pool // nil: none
	end          func()        // stops the goroutine that builds indexes, and waits for it
}

// maxTurns is how many turns are under way at once: while one commits, the other one is at work.
const maxTurns = 2

// Connect opens connections of the store for a queue that runs: two for turns, two for
// heartbeats and other calls, and without PollOnly one to listen. They have the configuration
// of the pool, and are closed when the last queue has called the function that Connect
// returns, and it also returns how many turns may be under way at once. [durable.Queue.Run] calls it.
func (s *Store) Connect() (turns int, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own.queues++; s.own.queues == 1 {
		s.own.turns, s.own.beats = s.poolOf(maxTurns), s.poolOf(2)
		ctx, cancel := context.WithCancel(context.Background())
		var builds sync.WaitGroup
		if !s.opts.SkipMigrations {
			builds.Go(func() { s.build(ctx) })
		}
		s.own.end = func() { cancel(); builds.Wait() }
	}
	return maxTurns, sync.OnceFunc(func() {
		s.mu.Lock()
		s.own.queues--
		last := s.own
		if last.queues == 0 {
			s.own = own{}
		}
		s.mu.Unlock()
		if last.queues == 0 {
			last.end()
			last.turns.Close()
			last.beats.Close()
		}
	})
}

// poolOf makes a pool with the caller's configuration. It connects when it is used.
func (s *Store) poolOf(most int32) *pgxpool.Pool {
	config := s.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = most, 0, 0
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		panic(err) // cannot happen: a pool has this configuration
	}
	return pool
}

// forTurns is the pool for turns, and forBeats the pool for beats.
func (s *Store) forTurns() *pgxpool.Pool {
	return s.choose(func(o *own) *pgxpool.Pool { return o.turns })
}
func (s *Store) forBeats() *pgxpool.Pool {
	return s.choose(func(o *own) *pgxpool.Pool { return o.beats })
}

func (s *Store) choose(of func(o *own) *pgxpool.Pool) *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pool := of(&s.own); pool != nil {
		return pool
	}
	return s.pool
}

// acquire returns a connection of the pool. If the server gives no more, it is one of another pool that has some.
func (s *Store) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for try := 1; ; try++ {
		conn, err := pool.Acquire(ctx)
		for _, other := range []*pgxpool.Pool{s.forTurns(), s.forBeats(), s.pool} {
			if full(err) && other != pool && other.Stat().TotalConns() > 0 {
				conn, err = other.Acquire(ctx)
			}
		}
		if !full(err) || try == maxTries || ctx.Err() != nil {
			return conn, err
		}
		s.mu.Lock()
		s.deaf = time.Now().Add(time.Minute)
		if s.hangUp != nil {
			s.hangUp()
		}
		s.mu.Unlock()
		select {
		case <-time.After(200 * time.Millisecond): // the server ends the connection that listened
		case <-ctx.Done():
		}
	}
}

// full reports whether the server has no more connections for the program.
func full(err error) bool {
	pg, ok := guard.As[*pgconn.PgError](err)
	return ok && pg.Code == "53300"
}

var indexOf = regexp.MustCompile(`(?:create|drop) index concurrently (?:if exists )?(\S+)`)

// build builds the indexes that are missing. It tries again every minute.
func (s *Store) build(ctx context.Context) {
	for s.buildOnce(ctx) != nil {
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return
		}
	}
}

// errBuilding means that another process builds the index.
var errBuilding = errors.New("postgres: another process builds the index")

// buildOnce builds outside of transactions and holds no lock that Open takes: the build waits for
// all older transactions, and one of them may wait for that lock.
func (s *Store) buildOnce(ctx context.Context) error {
	conn, err := s.forBeats().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for n, step := range s.steps {
		index := indexOf.FindStringSubmatch(step)
		if index == nil {
			continue
		}
		drops := strings.HasPrefix(index[0], "drop")
		name := s.in + "." + index[1]
		if drops {
			name = index[1]
		}
		var recorded, building bool
		var valid *bool
		err := conn.QueryRow(ctx, s.sql(`select exists (select from {s}.durable_migration where step = $1),
	(select indisvalid from pg_catalog.pg_index where indexrelid = pg_catalog.to_regclass($2)),
	exists (select from pg_catalog.pg_stat_progress_create_index where relid = pg_catalog.to_regclass($3))`), n+1, name, s.in+".durable_item").Scan(&recorded, &valid, &building)
		switch {
		case err != nil:
			return err
		case recorded:
			continue
		case building:
			return errBuilding
		case drops || valid != nil && !*valid: // a build was interrupted
			if _, err := conn.Exec(ctx, "drop index concurrently if exists "+name); err != nil {
				return err
			}
			valid = nil
		}
		if valid == nil && !drops {
			if _, err := conn.Exec(ctx, step[strings.Index(step, "create"):]); err != nil {
				return err
			}
		}
		if _, err := conn.Exec(ctx, s.sql("insert into {s}.durable_migration (step) values ($1) on conflict do nothing"), n+1); err != nil {
			return err
		}
	}
	return nil
}
