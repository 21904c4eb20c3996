//go:build unix

// Command chaos tries to break atoms/durable on PostgreSQL, and fails if it can:
//
//	go run ./scripts/postgres go run ./scripts/chaos -for 1m
//
// It starts a server, and itself as worker processes that add, run, cancel and retry items.
// Meanwhile it kills workers, stops them for longer than their lease, cuts and stalls their
// connections, and restarts the server without warning. All the time it reads what must be
// so at every instant. At the end calm workers run what is left, and it checks what the
// workers have written, and each change of an item, which triggers in the database record.
//
// With -parts, it tries to break all parts together in this process instead, without
// PostgreSQL.
//
// With -mutate, a fence is missing in the statements of the workers: then it must fail.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
)

const variable = "EPHEMERAL_CHAOS_WORKER"

func main() {
	var o options
	flag.DurationVar(&o.span, "for", time.Minute, "how long")
	flag.IntVar(&o.processes, "processes", 5, "workers")
	flag.IntVar(&o.keys, "keys", 60, "keys at a time; there are new ones every 20 seconds")
	flag.IntVar(&o.limit, "limit", 6, "MaxCluster; lanes have less; 0: there are no limits")
	flag.BoolVar(&o.halt, "halt", false, "HaltOnDead: keys wait for dead items, until those run again")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what is random; threads and the server are not repeatable")
	flag.BoolVar(&o.parts, "parts", false, "the world without PostgreSQL: all parts together in this process")
	flag.StringVar(&o.mutate, "mutate", "", "the fence that is missing: nolock, notoken, nolimit or noclass")
	flag.Parse()
	run := o.run
	if o.parts {
		run = o.runParts
	}
	if text := os.Getenv(variable); text != "" {
		run = func() error { return runWorker(text) }
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	span            time.Duration
	processes, keys int
	limit           int
	halt            bool
	seed            uint64
	mutate          string
	parts           bool
}

// A cluster is a run.
type cluster struct {
	options
	server  *server
	db      *pgxpool.Pool // not through a proxy
	queue   *durable.Queue[job]
	rnd     *rand.Rand
	workers []*process
	readers sync.WaitGroup

	mu     sync.Mutex
	events []event
	acked  int
	faults []string
	counts map[string]int
}

// A process is a worker. Its place has the same proxy after a restart.
type process struct {
	proxy *proxy
	cmd   *exec.Cmd
	mu    sync.Mutex // is not killed while it is paused, or the other way round

	touched time.Time // when something was done to it last; guarded by the mutex of the cluster
}

func (c *cluster) touch(all ...*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range all {
		p.touched = time.Now()
	}
}

func (o options) run() error {
	edit, err := mutation(o.mutate)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &cluster{options: o, rnd: rand.New(rand.NewPCG(o.seed, 0)), counts: map[string]int{}}
	fmt.Printf("seed %d\n", o.seed)
	if c.server, err = startServer(); err != nil {
		return err
	}
	defer c.server.remove()
	if err := c.open(ctx, edit); err != nil {
		return err
	}
	defer c.db.Close()
	defer c.killAll()
	for range o.processes {
		p, err := newProxy(c.server.dir, edit)
		if err != nil {
			return err
		}
		defer p.remove()
		c.workers = append(c.workers, &process{proxy: p})
	}
	for n := range c.workers {
		if err := c.spawn(n, false); err != nil {
			return err
		}
	}
	watching, unwatch := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { c.watch(watching) })
	err = c.torment(ctx)
	if err == nil {
		err = c.drain(ctx)
	}
	unwatch()
	watchers.Wait()
	if err != nil {
		return err
	}
	return c.judge(ctx)
}

// open makes the tables, and a queue that does not run. Edit changes the functions.
func (c *cluster) open(ctx context.Context, edit func([]byte) []byte) error {
	var err error
	if c.db, err = pgxpool.New(ctx, dsn(c.server.dir)); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, c.db, postgres.Options{Schema: storeSchema, PollOnly: true})
	if err != nil {
		return err
	}
	for _, text := range append(postgres.Migrations(storeSchema), schema) {
		mutated := string(edit([]byte(text)))
		if text != schema && mutated == text {
			continue
		}
		if at := strings.Index(mutated, "create function \""); at >= 0 {
			mutated = strings.ReplaceAll(mutated[at:], "create function ", "create or replace function ")
		}
		if _, err := c.db.Exec(ctx, mutated); err != nil {
			return err
		}
	}
	c.queue, err = newQueue(store, func(context.Context, job) error { return nil }, config{Limit: c.limit}, nil)
	return err
}

func (c *cluster) spawn(n int, calm bool) error {
	p := c.workers[n]
	name := fmt.Sprintf("%d-%x", n, c.rnd.Uint32())
	text, err := json.Marshal(config{Name: name, DSN: dsn(p.proxy.dir), Keys: c.keys, Limit: c.limit, Halt: c.halt, Seed: c.rnd.Uint64(), Old: n%2 == 0 && !calm, Calm: calm})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	_, err1 := p.cmd.StdinPipe() // ends with this process
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		return err
	}
	c.readers.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				continue // it was killed in the middle
			}
			e.Worker = name
			c.mu.Lock()
			c.events = append(c.events, e)
			if e.Op == "enqueue" && e.Out == "ok" {
				c.acked++
			}
			if e.Op == "hung" {
				c.faults = append(c.faults, fmt.Sprintf("a call ends: one of worker %s takes longer than %v", name, hangs))
			}
			if e.Op == "lost" {
				c.counts["leases lost"]++
				if time.Since(p.touched) > 2*lease {
					c.counts["lost untouched"]++
				}
			}
			c.mu.Unlock()
		}
	})
	return nil
}

// kill ends a process with SIGKILL. The lines that it has written are still read.
func (p *process) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Process.Wait()
	}
}

// replaceDead starts workers in place of those that items have killed.
func (c *cluster) replaceDead() error {
	for n, p := range c.workers {
		if !p.mu.TryLock() {
			continue
		}
		var err error
		if pid, _ := syscall.Wait4(p.cmd.Process.Pid, nil, syscall.WNOHANG, nil); pid > 0 {
			c.did("killed by items")
			c.touch(p)
			err = c.spawn(n, false)
		}
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) killAll() {
	for _, p := range c.workers {
		p.mu.Lock()
		p.kill()
		p.mu.Unlock()
	}
	c.readers.Wait()
}

func (c *cluster) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *cluster) faulty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.faults) > 0
}

func (c *cluster) did(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// torment does what the command is for, until the time is over or something is wrong.
func (c *cluster) torment(ctx context.Context) error {
	began, printed := time.Now(), time.Now()
	restart := began.Add(10 * time.Second)
	var acts sync.WaitGroup
	defer acts.Wait()
	for time.Since(began) < c.span && !c.faulty() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(c.rnd.IntN(int(time.Second)))):
		}
		if err := c.replaceDead(); err != nil {
			return err
		}
		n := c.rnd.IntN(len(c.workers))
		p, long := c.workers[n], 200*time.Millisecond+time.Duration(c.rnd.IntN(int(2*lease)))
		c.touch(p)
		switch act := c.rnd.IntN(10); {
		case time.Now().After(restart):
			c.did("restarts")
			c.touch(c.workers...)
			if err := c.server.restart(); err != nil {
				return err
			}
			c.touch(c.workers...)
			restart = time.Now().Add(10*time.Second + time.Duration(c.rnd.IntN(int(10*time.Second))))
		case act < 3:
			if p.mu.TryLock() {
				acts.Go(func() {
					defer p.mu.Unlock()
					c.did("pauses")
					p.cmd.Process.Signal(syscall.SIGSTOP)
					time.Sleep(long)
					p.cmd.Process.Signal(syscall.SIGCONT)
					c.touch(p)
				})
			}
		case act < 6:
			if p.mu.TryLock() {
				c.did("kills")
				p.kill()
				err := c.spawn(n, false)
				p.mu.Unlock()
				if err != nil {
					return err
				}
			}
		case act < 8:
			c.did("cuts")
			p.proxy.cut()
		default:
			c.did("stalls")
			acts.Go(func() {
				p.proxy.stall(long)
				c.touch(p)
			})
		}
		if time.Since(printed) >= time.Second {
			printed = time.Now()
			c.mu.Lock()
			fmt.Printf("%3.0f s: %d acknowledged, %v\n", time.Since(began).Seconds(), c.acked, c.counts)
			c.mu.Unlock()
		}
	}
	return nil
}

// watch reads, at random moments, what must be so at every instant.
func (c *cluster) watch(ctx context.Context) {
	const ask = `
select count(*) filter (where state = 4), coalesce(string_agg(split_part(lane, chr(1), -1), ',') filter (where state = 4), ''),
	count(*) filter (where state = 1 and not exists (select from chaos_queue.durable_item as h where h.key = i.key and h.state in (2, 4, 8, 16)))
from chaos_queue.durable_item as i where state in (1, 4)`
	for least := 0; ctx.Err() == nil && !c.faulty(); time.Sleep(time.Duration(rand.IntN(int(40 * time.Millisecond)))) {
		s, err := c.queue.Stats(ctx)
		if err != nil {
			continue // the server restarts
		}
		c.did("looks")
		if sum := s.Blocked + s.Ready + s.Delayed + s.Running + s.Retry + s.Halted + s.Done + s.Dead + s.Cancelled; sum != s.Items || s.Items < least {
			c.fault("B10 Stats balance: %v: the states make %d, and there were %d items before", s, sum, least)
		}
		least = s.Items
		var running, orphans int
		var lanes string
		if err := c.db.QueryRow(ctx, ask).Scan(&running, &lanes, &orphans); err != nil {
			continue
		}
		live := map[string]int{}
		for lane := range strings.SplitSeq(lanes, ",") {
			live[lane]++
		}
		live[""] = running
		if limitsOf(c.limit).broken(live) {
			c.fault("B4 limits: items that run are %v, limits %v", live, limitsOf(c.limit))
		}
		if orphans > 0 {
			c.fault("B11 no lost wake-up: %d items are blocked by a head that is not there", orphans)
		}
		c.explain(ctx)
	}
}

// explain asks why an item waits.
func (c *cluster) explain(ctx context.Context) {
	for i, err := range c.queue.Items(ctx, durable.Query{State: durable.Waiting, Limit: 1}) {
		if err != nil {
			return
		}
		x, err := c.queue.Explain(ctx, i.ID)
		if err == nil && x.Item.State == durable.Blocked && (x.Head == nil || x.Ahead == 0 || !strings.Contains(x.String(), "behind")) {
			c.fault("B12 Explain: item %d is blocked, and this is why: %s", i.ID, x)
		}
	}
}

// drain replaces the workers by calm ones and waits until all items have ended.
func (c *cluster) drain(ctx context.Context) error {
	c.killAll()
	if c.faulty() {
		return nil
	}
	for n := range c.workers {
		if err := c.spawn(n, true); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
	defer cancel()
	for left := 1; left > 0; time.Sleep(50 * time.Millisecond) {
		s, err := c.queue.Stats(ctx)
		if s.Halted > 0 {
			c.queue.AgainAll(ctx, durable.Query{State: durable.Halted})
		}
		if left = s.Items - s.Done - s.Dead - s.Cancelled; ctx.Err() != nil || c.faulty() {
			break
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		for i := range c.queue.Items(context.Background(), durable.Query{State: durable.Waiting | durable.Running | durable.Halted, Limit: 1}) {
			x, err := c.queue.Explain(context.Background(), i.ID)
			c.fault("B1 every item ends: item %d has not, %v: %v %v", i.ID, context.Cause(ctx), x, err)
		}
	}
	for n, p := range c.workers {
		p.cmd.Process.Signal(syscall.SIGTERM)
		if state, err := p.cmd.Process.Wait(); err != nil || !state.Success() {
			c.fault("shutdown: calm worker %d has ended with %v, %v", n, state, err)
		}
		p.cmd = nil
	}
	c.readers.Wait()
	return nil
}

// judge checks what has happened, and prints it.
func (c *cluster) judge(ctx context.Context) error {
	h, err := load(ctx, c.db, limitsOf(c.limit), c.events)
	if err != nil {
		return err
	}
	var r *report
	if r = check(h, time.Minute); c.faulty() {
		r.faults = slices.DeleteFunc(r.faults, func(f string) bool { return strings.HasPrefix(f, "B1 every item ends") }) // it was not drained
	}
	faults := append(c.faults, r.faults...)
	n, k := c.counts, r.counts
	lost := 0
	for _, f := range faults {
		if strings.HasPrefix(f, "B1 no item is lost") {
			lost++
		}
	}
	fmt.Printf(`
| run | kills / pauses / cuts / stalls / restarts | acknowledged | lost | effects twice | fenced | FIFO | at once (limit %d) | retried / cancelled / dead | freed | read |
|---|---|---|---|---|---|---|---|---|---|---|
| %s | %d / %d / %d / %d / %d | %d | %d | %d (%d without Finish) | %d | %s | %d | %d / %d / %d | %d | %d |

`, c.limit, c.name(), n["kills"], n["pauses"], n["cuts"], n["stalls"], n["restarts"], k["acknowledged"], lost, k["effects twice"], k["repeated"],
		k["fenced"], r.order, k["at once"], k["retried"], k["cancelled"], k["dead"], k["freed"], n["looks"])
	for _, f := range faults[:min(5, len(faults))] {
		fmt.Println(f)
	}
	switch {
	case len(faults) > 0:
		return fmt.Errorf("%d violations; seed %d", len(faults), c.seed)
	case r.order != porcupine.Ok:
		return fmt.Errorf("porcupine did not decide about the order of keys; the longest has %d items", k["longest"])
	}
	return nil
}

func (c *cluster) name() string {
	if c.mutate != "" {
		return "mutation " + c.mutate
	}
	name := fmt.Sprintf("%d keys, %v", c.keys, c.span)
	if c.halt {
		name += ", halt"
	}
	return name
}
