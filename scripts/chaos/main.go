//go:build unix

// Command chaos tries to break atoms/durable, and fails if it can:
//
//	go run ./scripts/postgres go run ./scripts/chaos -for 1m
//	go run ./scripts/chaos -sqlite -for 1m
//
// It starts a server of PostgreSQL, and itself as worker processes that add, run, cancel and retry
// items. Meanwhile it kills workers, stops them for longer than their lease, cuts and stalls their
// connections, restarts the server without warning, and pauses keys, the class and the queue. With -sqlite they share a file instead, and
// are killed and stopped. All the time it reads what must be so at every instant. At the end calm
// workers run what is left, and it checks what the workers have written, and each change of an item,
// which triggers in the database record.
//
// With -mutate, it builds a copy of this program whose sources lack a fence, and runs that until it fails.
//
// With -clock, a worker of PostgreSQL has a wall clock that is wrong by 20 seconds or ten years.
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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

const variable = "EPHEMERAL_CHAOS_WORKER"

func main() {
	var o options
	flag.DurationVar(&o.span, "for", time.Minute, "how long")
	flag.IntVar(&o.limit, "limit", 6, "MaxCluster; lanes have less; 0: there are no limits")
	flag.BoolVar(&o.halt, "halt", false, "HaltOnDead: keys wait for dead items, until those run again")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what is random; threads and the server are not repeatable")
	flag.BoolVar(&o.sqlite, "sqlite", false, "SQLite in place of PostgreSQL")
	flag.IntVar(&o.flows, "flows", 8, "one of so many items has a flow")
	flag.BoolVar(&o.clock, "clock", false, "wrong clocks; PostgreSQL only")
	flag.StringVar(&o.mutate, "mutate", "", "the fence that is missing, see build.go, or all, one after the other")
	flag.Parse()
	run := o.run
	if text := os.Getenv(variable); text != "" {
		run = func() error { return runWorker(text) }
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	span   time.Duration
	limit  int
	halt   bool
	seed   uint64
	mutate string
	sqlite bool
	clock  bool
	flows  int
}

func (o options) engine() string {
	if o.sqlite {
		return "sqlite"
	}
	return "postgres"
}

// A cluster is a run.
type cluster struct {
	options
	notes                       // its own
	dir     string              // for files
	server  *server             // nil: SQLite
	db      *database           // not through a proxy
	program string              // of new workers
	wrong   string              // of workers with a wrong clock; "": there are none
	queue   *durable.Queue[job] // does not run
	rnd     *rand.Rand
	workers []*process
	readers sync.WaitGroup
	senders sync.WaitGroup

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
}

func (o options) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.mutate != "" && os.Getenv(mutant) == "" {
		return o.runMutations(ctx)
	}
	c := &cluster{options: o, rnd: rand.New(rand.NewPCG(o.seed, 0)), counts: map[string]int{}}
	c.write = func(e event) {
		e.Worker, e.At = "chaos", time.Now().UnixNano()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, e)
	}
	fmt.Printf("seed %d\n", o.seed)
	var err error
	if c.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	if c.program, err = os.Executable(); err != nil {
		return err
	}
	if !o.sqlite {
		if c.server, err = startServer(); err != nil {
			return err
		}
		defer c.server.remove()
	}
	if o.clock && !o.sqlite {
		if c.wrong, err = o.buildClock(ctx, c.dir); err != nil {
			return err
		}
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.db.close()
	defer c.killAll()
	for range processes {
		p := &process{}
		if c.workers = append(c.workers, p); c.server == nil {
			continue
		}
		if p.proxy, err = newProxy(c.server.dir); err != nil {
			return err
		}
		defer p.proxy.remove()
	}
	watching, unwatch := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { c.watch(watching) })
	began := time.Now()
	var r *report
	for r == nil || time.Since(began) < c.span && o.mutate != "" && len(r.faults) == 0 && !c.faulty() {
		if r, err = c.round(ctx); err != nil {
			break
		}
	}
	unwatch()
	watchers.Wait()
	if err != nil {
		return err
	}
	return c.judge(r, time.Since(began))
}

// round torments workers for as long as the command says, lets calm workers do the rest, and checks
// what has happened. Mutants have many short rounds.
func (c *cluster) round(ctx context.Context) (*report, error) {
	span := c.span
	if c.mutate != "" {
		span = min(span, 12*time.Second)
	}
	for n := range c.workers {
		if err := c.spawn(n, false); err != nil {
			return nil, err
		}
	}
	err := c.torment(ctx, span)
	if err == nil {
		err = c.drain(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	events := slices.Clone(c.events)
	c.mu.Unlock()
	h, err := load(ctx, c.db.read, c.local, limitsOf(c.limit), events)
	if err != nil {
		return nil, err
	}
	return check(h), nil
}

// open makes the tables, and a queue that does not run.
func (c *cluster) open(ctx context.Context) error {
	own := config{Name: "chaos", Limit: c.limit}
	schema := strings.Replace(schemaOfPostgres, "{slow}", fmt.Sprint(1/float64(c.flows)), 1)
	if c.server != nil {
		own.DSN = dsn(c.server.dir)
	} else {
		own.File, schema = c.file(), schemaOfSQLite
	}
	var err error
	if c.db, err = open(ctx, own, true); err != nil {
		return err
	}
	if err = c.db.exec(ctx, schema); err == nil {
		c.queue, err = newQueue(c.db.store, func(context.Context, job) error { return nil }, own, nil)
	}
	if err == nil {
		err = c.queue.SetClass(ctx, classOf(c.limit)) // before a process without the class claims its items
	}
	if err != nil {
		c.db.close()
	}
	return err
}

func (c *cluster) file() string { return filepath.Join(c.dir, "items.db") }

// local makes a statement one of the engine.
func (c *cluster) local(statement string) string {
	if c.sqlite {
		return plain(statement)
	}
	return statement
}

func (c *cluster) spawn(n int, calm bool) error {
	p := c.workers[n]
	name := fmt.Sprintf("%d-%x", n, c.rnd.Uint32())
	if calm {
		name = "calm-" + name
	}
	own := config{Name: name, Limit: c.limit, Flows: c.flows, Halt: c.halt, Seed: c.rnd.Uint64(), Old: n%2 == 0 && !calm, Calm: calm}
	program, clock := c.program, ""
	if c.server != nil {
		own.DSN = dsn(p.proxy.dir) + "&application_name=" + name
	} else {
		own.File = c.file()
	}
	if c.wrong != "" && n == 0 {
		const years = "87600h"
		program, clock = c.wrong, []string{"20s", "-20s", years, "-" + years}[c.rnd.IntN(4)]
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(program)
	p.cmd.Env = append(os.Environ(), variable+"="+string(text), "EPHEMERAL_CHAOS_CLOCK="+clock)
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
			if e.Op == "waits" {
				c.senders.Go(func() { c.answer(context.Background(), e) })
			}
			if e.Op == "hung" {
				c.faults = append(c.faults, fmt.Sprintf("a call ends: one of worker %s takes longer than %v", name, hangs))
			}
			if e.Op == "lost" {
				c.counts["leases lost"]++
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
func (c *cluster) torment(ctx context.Context, span time.Duration) error {
	began, printed := time.Now(), time.Now()
	restart := began.Add(10 * time.Second)
	var acts sync.WaitGroup
	defer acts.Wait()
	for time.Since(began) < span && !c.faulty() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(c.rnd.IntN(int(time.Second)))):
		}
		if err := c.replaceDead(); err != nil {
			return err
		}
		n := c.rnd.IntN(len(c.workers))
		p, long := c.workers[n], lease/4+time.Duration(c.rnd.Int64N(int64(2*lease)))
		pause, early := c.pick(), time.Duration(c.rnd.Int64N(int64(lease/3)))
		acts.Go(func() { c.hold(ctx, pause, early) })
		act := c.rnd.IntN(10)
		if c.server == nil {
			act = act * 6 / 10 // the others need a server
		}
		switch {
		case c.server != nil && time.Now().After(restart):
			c.did("restarts")
			if err := c.server.restart(); err != nil {
				return err
			}
			restart = time.Now().Add(10*time.Second + time.Duration(c.rnd.Int64N(int64(10*time.Second))))
		case act < 3:
			if p.mu.TryLock() {
				acts.Go(func() {
					defer p.mu.Unlock()
					c.did("stops")
					p.cmd.Process.Signal(syscall.SIGSTOP)
					time.Sleep(long)
					p.cmd.Process.Signal(syscall.SIGCONT)
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
			acts.Go(func() { p.proxy.stall(long) })
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

// pick returns what to pause next.
func (c *cluster) pick() durable.Pause {
	p := durable.Pause{For: time.Duration(1 + c.rnd.Int64N(int64(lease/2))), Reason: "chaos"}
	switch c.rnd.IntN(8) {
	case 0:
		p.For /= 4 // the queue
	case 1, 2:
		p.Class = className
	default:
		p.Key = fmt.Sprintf("%d.%d", time.Now().Unix()/20, c.rnd.IntN(keys/10)) // a busy one
	}
	return p
}

// hold pauses something. If early comes before the end of that, it resumes it then.
func (c *cluster) hold(ctx context.Context, p durable.Pause, early time.Duration) {
	if err := c.pause(ctx, c.queue, p); err == nil && early < p.For {
		time.Sleep(early)
		p.For = 0
		_ = c.pause(ctx, c.queue, p)
	}
}

// watch reads, at random moments, what must be so at every instant.
func (c *cluster) watch(ctx context.Context) {
	ask := c.local(`
select count(*) filter (where state = 4), coalesce(string_agg(lane, ',') filter (where state = 4), ''),
	count(*) filter (where state = 1 and not exists (select 1 from chaos_queue.durable_item as h where h.key = i.key and h.state in (2, 4, 8, 16)))
from chaos_queue.durable_item as i where state in (1, 4)`)
	if c.sqlite {
		ask = strings.Replace(ask, "string_agg", "group_concat", 1)
	}
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
		if err := c.db.read.QueryRowContext(ctx, ask).Scan(&running, &lanes, &orphans); err != nil {
			continue
		}
		live := limits{}
		for place := range strings.SplitSeq(lanes, ",") {
			var at durable.Item
			at.SetPlace(place)
			live.add(at.Lane, at.Class, 1)
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
		c.fault("B1 every item ends: %v, and not all has ended", context.Cause(ctx))
		for i := range c.queue.Items(context.Background(), durable.Query{State: durable.Waiting | durable.Running | durable.Halted, Limit: 1}) {
			x, err := c.queue.Explain(context.Background(), i.ID)
			c.fault("B1 every item ends: item %d has not, %v: %v %v", i.ID, context.Cause(ctx), x, err)
		}
	}
	late := time.AfterFunc(2*hangs, func() {
		for _, p := range c.workers {
			p.cmd.Process.Kill()
		}
	})
	defer late.Stop()
	for _, p := range c.workers {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for n, p := range c.workers {
		if state, err := p.cmd.Process.Wait(); err != nil || !state.Success() {
			c.fault("shutdown: calm worker %d has ended with %v, %v", n, state, err)
		}
	}
	c.readers.Wait()
	c.senders.Wait()
	return nil
}

// judge prints what has happened.
func (c *cluster) judge(r *report, after time.Duration) error {
	if c.faulty() {
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
| run | kills / stops / cuts / stalls / restarts | pauses | acknowledged | lost | effects twice | fenced | at once (limit %d) | of the class | retried / cancelled / dead | freed | flows: steps / undone | signals: taken / late | read |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| %s | %d / %d / %d / %d / %d | %d | %d | %d | %d (%d without Finish) | %d | %d | %d | %d / %d / %d | %d | %d: %d / %d | %d: %d / %d | %d |

`, c.limit, c.name(), n["kills"], n["stops"], n["cuts"], n["stalls"], n["restarts"], k["pauses"], k["acknowledged"], lost, k["effects twice"], k["repeated"],
		k["fenced"], k["at once"], k["of the class"], k["retried"], k["cancelled"], k["dead"], k["freed"], k["flows"], k["steps"], k["undone"], k["signals"], k["taken"], k["late"], n["looks"])
	for _, f := range faults[:min(5, len(faults))] {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		promise, _, _ := strings.Cut(faults[0], ":")
		fmt.Printf("found after %.0f s: %s\n", after.Seconds(), promise)
		return fmt.Errorf("%d violations; seed %d", len(faults), c.seed)
	}
	return nil
}

func (c *cluster) name() string {
	if c.mutate != "" {
		return c.engine() + ", mutation " + c.mutate
	}
	name := fmt.Sprintf("%s, %v", c.engine(), c.span)
	if c.clock {
		name += ", wrong clocks"
	}
	if c.halt {
		name += ", halt"
	}
	return name
}
