//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// The queue of all runs.
const (
	processes   = 5
	keys        = 60 // at a time; there are new ones every 20 seconds
	queueName   = "chaos"
	maxAttempts = 4
	lease       = 1500 * time.Millisecond
	hangs       = 10 * time.Second // no call takes so long, with pauses and stalls
)

// limits are those of the cluster, of its lanes, and of the class.
type limits map[string]int

// limitsOf makes the limits of lanes from that of the cluster. 0 is none.
func limitsOf(all int) limits {
	return limits{"": all, "hot": all * 2 / 3, "slow": all / 3, className: all / 2}
}

// className is the class of about a quarter of the items. No lane has this name.
const className = "rated"

// classOf is the class beside the limit of the cluster. Without limits it has neither limit nor rate.
func classOf(all int) durable.Class {
	c := durable.Class{Name: className, Limit: limitsOf(all)[className]}
	if all > 0 {
		c.Rate = core.Rate{PerSecond: 10, Burst: 4}
		c.CostRate = core.Rate{PerSecond: 25, Burst: 10} // items of the class cost 1 to 5
	}
	return c
}

// keyRate is the rate of each key.
func keyRate(all int) (rate core.Rate) {
	if all > 0 {
		rate = core.Rate{PerSecond: 4, Burst: 3}
	}
	return rate
}

// classes are those of a process. Some have none, so they claim items of classes only when they see them wait.
func (c config) classes() []durable.Class {
	if !c.Calm && c.Seed%4 == 1 {
		return nil
	}
	return []durable.Class{classOf(c.Limit)}
}

// add counts one more or less that runs, or a few, by where the store has it.
func (l limits) add(lane, class string, n int) {
	l[""] += n
	l[lane] += n
	if class != "" {
		l[class] += n
	}
}

// broken says whether more items run than may.
func (l limits) broken(running map[string]int) bool {
	for lane, limit := range l {
		if limit > 0 && running[lane] > limit {
			return true
		}
	}
	return false
}

// A config is what the parent tells a worker.
type config struct {
	Name  string // of this process: no other one has it
	DSN   string // of PostgreSQL
	File  string // of SQLite; "": PostgreSQL
	Seed  uint64
	Limit int
	Flows int  // one of so many items has a flow, and one of twice as many is long
	Halt  bool // HaltOnDead
	Old   bool // has the lane "old" and adds items to it; calm workers do not have it
	Calm  bool // only runs items, and all of them end well
}

// A job is an item of the queue.
type job struct {
	Ref    string // no other call of Enqueue has it
	Key    string
	Tx     bool  // its effect is in the transaction in which it ends
	Poison bool  // fails nearly always
	Kill   bool  // kills its process
	Long   bool  // takes up to two leases, so that a process that was stopped finds it running elsewhere
	Most   int   `json:",omitempty"` // MaxAttempts of its own; 0: that of the queue
	Trip   *trip `json:",omitempty"` // nil: it has no flow
}

// An event is a line that a worker writes, or a note of the parent. A call has two, with one number: at its
// beginning, without Out, and at its end. If the end is missing it may have done anything.
type event struct {
	Worker string `json:",omitempty"` // the parent adds it
	Call   int64  `json:",omitempty"`
	Op     string // enqueue, effect, cancel, step, undo, signal, pause, resume; start, stop, told, took (a signal), late (was none), waits, lost (of a lease) and hung are no calls
	Out    string `json:",omitempty"` // of calls ok, no or maybe; of told the signal
	At     int64  // nanoseconds: all processes have the clock of one host
	Ref    string `json:",omitempty"` // of an item, the name of a step, or the class that is paused
	Unique string `json:",omitempty"` // of an item, or of a signal
	Skip   string `json:",omitempty"` // the key of an item with SkipIfAlive, of one that waits for a signal, or of a signal or pause
	Item   int64  `json:",omitempty"`
	Token  int64  `json:",omitempty"`
	Tries  int    `json:",omitempty"`
	Losses int    `json:",omitempty"` // of told: leases lost before the claim
	Of     int64  `json:",omitempty"` // of undo: the result, a token; of pause: microseconds
}

// notes are the events of a process.
type notes struct {
	write func(e event)
	calls atomic.Int64
}

// begin writes the beginning of a call, and the function that it returns the end.
func (n *notes) begin(e event) func(item durable.ItemID, out string) {
	e.Call = n.calls.Add(1)
	n.write(e)
	return func(item durable.ItemID, out string) {
		if e.Out = out; item != 0 {
			e.Item = int64(item)
		}
		n.write(e)
	}
}

// pause calls Pause, or Resume if p.For is 0.
func (n *notes) pause(ctx context.Context, q *durable.Queue[job], p durable.Pause) (err error) {
	e, call := event{Op: "pause", Skip: p.Key, Ref: p.Class, Of: p.For.Microseconds()}, q.Pause
	if p.For == 0 {
		e.Op, call = "resume", q.Resume
	}
	end := n.begin(e)
	end(0, insist(ctx, func() error {
		err = call(ctx, p)
		return err
	}))
	return err
}

// insist calls a function until it succeeds, while the server restarts.
func insist(ctx context.Context, do func() error) string {
	for range 50 {
		if do() == nil {
			return "ok"
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return "maybe"
		}
	}
	return "maybe" // one that was tried before may have done it
}

type worker struct {
	config
	notes
	rnd   *rand.Rand // of mu
	db    *database
	queue *durable.Queue[job]
	full  atomic.Bool    // enough items wait
	body  core.Work[job] // live, with a breaker for each key

	mu     sync.Mutex
	recent []added
}

type added struct {
	id  durable.ItemID
	key string
}

// runWorker is the main function of a worker.
func runWorker(text string) error {
	w := &worker{}
	if err := json.Unmarshal([]byte(text), &w.config); err != nil {
		return err
	}
	w.rnd, w.write = rand.New(rand.NewPCG(w.Seed, w.Seed)), emit
	breakers, err := circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Rule: breaker.Options{Threshold: 2, OpenFor: lease / 3},
		Pause: func(ctx context.Context, key string, d time.Duration, reason string) error {
			return w.pause(ctx, w.queue, durable.Pause{Key: key, For: d, Reason: reason, Auto: true})
		},
		Trial: func(ctx context.Context) bool { return durable.ClaimFrom(ctx).Trial }})
	if err != nil {
		return err
	}
	w.body = circuitbreaker.WrapKeyed(breakers, func(j job) string { return j.Key }, w.live)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // the parent has gone
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if w.db, err = open(ctx, w.config, false); err != nil {
		return err
	}
	defer w.db.close()
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Subscribe("durable.*", func(s signals.Signal) {
		if i, ok := s.Payload().(durable.Item); ok {
			w.write(event{Op: "told", Out: s.Name, Item: int64(i.ID), Token: i.Token, Losses: i.Losses})
		} else if s.Name == durable.SignalLeaseLost {
			w.write(event{Op: "lost"})
		}
	})
	w.queue, err = newQueue(w.db.store, w.work, w.config, sink)
	if err != nil {
		return err
	}
	defer w.queue.Close()
	if !w.Calm {
		for range 3 {
			go w.repeat(ctx, 150*time.Millisecond, w.produce)
		}
		go w.repeat(ctx, 400*time.Millisecond, w.watch)
		go w.repeat(ctx, 400*time.Millisecond, func(ctx context.Context) { w.cancel(ctx, "") })
		go w.repeat(ctx, 2*time.Second, w.again)
	}
	return w.queue.Run(ctx)
}

func newQueue(store durable.Store, work core.Work[job], c config, sink *signals.Sink) (*durable.Queue[job], error) {
	var lanes []core.Lane
	names := []string{"hot", "normal", "slow"}
	if c.Old {
		names = append(names, "old")
	}
	for _, name := range names {
		lanes = append(lanes, core.Lane{Name: name, Limit: limitsOf(c.Limit)[name]})
	}
	return durable.New(store, func(j job) string { return j.Key }, work, durable.Options{Name: queueName, Node: c.Name, Sink: sink, Lease: lease, Poll: 200 * time.Millisecond,
		Timeout: 2 * lease, MaxConcurrency: 4, MaxCluster: c.Limit, Lanes: lanes, Classes: c.classes(), KeyRate: keyRate(c.Limit), HaltOnDead: c.Halt, Ageing: time.Second, MaxAttempts: maxAttempts, Backoff: 50 * time.Millisecond, MaxBackoff: 500 * time.Millisecond})
}

// emit writes a line in one call, so that it is whole or missing.
func emit(e event) {
	e.At = time.Now().UnixNano()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil {
		os.Exit(1)
	}
}

// chance is true in one of n calls.
func (w *worker) chance(n int) bool { return w.random(n) == 0 }

func (w *worker) random(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(n)
}

func (w *worker) upTo(d time.Duration) time.Duration {
	return time.Duration(w.random(int(d/time.Microsecond))) * time.Microsecond
}

func (w *worker) repeat(ctx context.Context, every time.Duration, do func(ctx context.Context)) {
	for ctx.Err() == nil {
		time.Sleep(w.upTo(2 * every))
		hung := time.AfterFunc(hangs, func() { w.write(event{Op: "hung"}) })
		do(ctx)
		hung.Stop()
	}
}

// replaced is how the Unique ids of items with Replace begin.
const replaced = "replaced "

// produce adds an item, or a few.
func (w *worker) produce(ctx context.Context) {
	if w.full.Load() {
		return
	}
	with := durable.ItemOptions{}
	if w.chance(2) {
		with.Lane = []string{"hot", "normal", "slow"}[w.random(3)]
	}
	if w.Old && w.chance(10) {
		with.Lane = "old"
	}
	if w.chance(3) && w.classes() != nil {
		with.Class, with.Cost = className, 1+w.random(5)
	}
	if w.chance(6) {
		with.Delay = w.upTo(time.Second)
	}
	epoch, key := time.Now().Unix()/20, w.random(keys)
	if w.chance(2) {
		key /= 10 // some keys are busy
	}
	j := job{Key: fmt.Sprintf("%d.%d", epoch, key), Tx: w.chance(2), Poison: w.chance(20), Kill: w.chance(500), Long: w.chance(2 * w.Flows)}
	if w.chance(10) {
		j.Key = ""
	}
	if w.chance(5) {
		j.Most = 1 + w.random(maxAttempts)
		with.MaxAttempts, with.Metadata = j.Most, map[string]string{"key": j.Key}
	}
	if w.chance(w.Flows) {
		j.Trip, with.Class, with.Cost = w.trip(), "", 0
	}
	ref := func() { j.Ref = fmt.Sprintf("%s.%d", w.Name, w.calls.Add(1)) }
	ref()
	e := event{Op: "enqueue", Ref: j.Ref}
	switch w.random(10) {
	case 0, 1:
		with.Unique = j.Ref
	case 5: // a few ids, each of one key, lane and class: the newest data replaces what waits
		id := fmt.Sprintf("%s%d.%d", replaced, epoch, w.random(20))
		with = durable.ItemOptions{Unique: id, Replace: true, Delay: with.Delay, MaxAttempts: with.MaxAttempts}
		j.Key, j.Tx, j.Kill, j.Trip = id, false, false, nil
	case 6:
		if with.SkipIfAlive = j.Key != ""; with.SkipIfAlive {
			e.Skip = j.Key
		}
	case 2:
		with.Unique = fmt.Sprintf("%d.%d", epoch, w.random(50))
	case 3:
		w.place(ctx, j, with)
		return
	case 4:
		var jobs []job
		var ends []func(durable.ItemID, string)
		for range 2 + w.random(4) {
			ref()
			jobs, ends = append(jobs, j), append(ends, w.begin(event{Op: "enqueue", Ref: j.Ref}))
		}
		ids, err := w.queue.With(with).EnqueueAll(ctx, jobs)
		for n, end := range ends {
			if err != nil {
				end(0, outcome(err))
				continue
			}
			end(ids[n], "ok")
		}
		return
	}
	if w.chance(20) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, w.upTo(10*time.Millisecond))
		defer stop()
	}
	e.Unique = with.Unique
	end := w.begin(e)
	id, err := w.queue.With(with).Enqueue(ctx, j)
	out := outcome(err)
	for out == "maybe" && with.Unique == j.Ref && ctx.Err() == nil { // the Unique id lets it be called again
		if id, err = w.queue.With(with).Enqueue(ctx, j); err == nil {
			out = "ok"
		}
	}
	end(id, out)
	if err == nil {
		w.mu.Lock()
		w.recent = append(w.recent[max(0, len(w.recent)-20):], added{id, j.Key})
		w.mu.Unlock()
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, durable.ErrUndecided):
		return "maybe"
	}
	return "no"
}

// place adds an item in a transaction that writes something else, too. Some are rolled back.
func (w *worker) place(ctx context.Context, j job, with durable.ItemOptions) {
	end := w.begin(event{Op: "enqueue", Ref: j.Ref})
	ctx, stop := context.WithTimeout(ctx, 2*lease)
	defer stop()
	var id durable.ItemID
	err := w.db.change(ctx, func(ctx context.Context, tx transaction) error {
		err := tx.exec("insert into chaos.placed values ($1)", j.Ref)
		if err == nil {
			if id, err = tx.enqueue(w.queue.With(with), j); j.Key != "" && w.chance(2) {
				go w.cancel(context.Background(), j.Key) // the head of the key, which leaves while nobody sees the new item
			}
			w.linger()
		}
		if w.chance(4) {
			err = errors.Join(err, errors.New("chaos: rolled back"))
		}
		return err
	})
	end(id, outcome(err))
}

// linger keeps a transaction open for a moment, or until the server ends it. Meanwhile its process
// may be killed or paused.
func (w *worker) linger() {
	long := w.db.open
	if w.chance(200) {
		time.Sleep(w.upTo(long))
	} else if w.chance(10) {
		time.Sleep(w.upTo(long / 15))
	}
}

// watch looks whether enough items wait.
func (w *worker) watch(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 2*lease)
	defer stop()
	if s, err := w.queue.Stats(ctx); err == nil {
		w.full.Store(s.Blocked+s.Ready > 400)
	}
}

// pick returns an item of a key; "" is any.
func (w *worker) pick(key string) durable.ItemID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []added
	for _, a := range w.recent {
		if key == "" || a.key == key {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		return 0
	}
	return some[w.rnd.IntN(len(some))].id
}

// cancel cancels an item of a key that is perhaps still there.
func (w *worker) cancel(ctx context.Context, key string) {
	ctx, stop := context.WithTimeout(ctx, 2*lease)
	defer stop()
	if id := w.pick(key); id != 0 {
		end := w.begin(event{Op: "cancel", Item: int64(id)})
		ok, err := w.queue.Cancel(ctx, id, "chaos")
		switch {
		case err != nil:
			end(id, outcome(err))
		case ok:
			end(id, "ok")
		default:
			end(id, "no")
		}
	}
}

// again lets items that are dead, or perhaps cancelled, run again.
func (w *worker) again(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 2*lease)
	defer stop()
	w.queue.AgainAll(ctx, durable.Query{Dead: true, Limit: 10})
	if id := w.pick(""); id != 0 {
		w.queue.Again(ctx, id)
	}
}

// work is the body of all items.
func (w *worker) work(ctx context.Context, j job) error {
	c := durable.ClaimFrom(ctx)
	w.write(event{Op: "start", Ref: j.Ref, Item: int64(c.ID), Token: c.Token, Tries: c.Attempt})
	defer w.write(event{Op: "stop", Item: int64(c.ID), Token: c.Token})
	if j.Trip != nil {
		if err := w.flow(ctx, j); err != nil {
			return err
		}
	} else if !w.Calm {
		do := w.body
		if j.Key == "" {
			do = w.live
		}
		if err := do(ctx, j); err != nil {
			return err
		}
	}
	end := w.begin(event{Op: "effect", Ref: j.Ref, Item: int64(c.ID), Token: c.Token})
	err := w.db.change(ctx, func(ctx context.Context, tx transaction) error {
		err := tx.exec("insert into chaos.effect (item, token) values ($1, $2)", int64(c.ID), c.Token)
		if err == nil && j.Tx {
			err = tx.finish()
			w.linger()
		}
		return err
	})
	if err != nil {
		end(c.ID, "maybe")
		return err
	}
	end(c.ID, "ok")
	if j.Tx && !w.Calm && w.chance(10) {
		return errors.New("chaos: after the end")
	}
	return nil
}

// live takes some time, and perhaps fails.
func (w *worker) live(ctx context.Context, j job) error {
	long := w.upTo(40 * time.Millisecond)
	if j.Long {
		long = w.upTo(2 * lease)
	}
	if j.Kill {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if w.chance(2) { // it occupies the pool of the program
		defer w.db.occupy(ctx)()
	}
	if w.chance(2) {
		time.Sleep(long) // and ignores that it is cancelled
	} else {
		select {
		case <-time.After(long):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	n := w.random(100)
	switch {
	case n < 5, j.Poison && n < 80, strings.HasSuffix(j.Key, "3") && time.Now().Unix()%4 == 0: // some keys in bursts
		return errors.New("chaos: failed")
	case n < 6:
		return durable.Permanent(errors.New("chaos: failed for ever"))
	case n < 9:
		return durable.Snooze(50 * time.Millisecond)
	case n < 10:
		panic("chaos")
	}
	return nil
}
