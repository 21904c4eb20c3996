package durable

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An ending is the end of a claim that is not recorded yet.
type ending struct {
	run   *run
	end   End
	busy  int // how often the lock of its key was taken
	since time.Time
}

// A pump makes turns, one at a time: it takes all waiting ends and all free slots, calls the
// store, starts the claimed items, and then reports the ends.
type pump[T any] struct {
	*loop[T]
	running context.Context // ends when no more items are to be claimed
	quit    chan struct{}   // is closed when all bodies have ended
	more    bool            // there may be items to claim
	turns   mean
	noAhead atomic.Int64  // the time until which nothing is claimed ahead, in nanoseconds after the share began
	entry   entry         // what the turn may claim
	low     int           // items claimed since the last item that was claimed for its age
	again   []*ending     // ends that a turn has not recorded
	retry   time.Time     // when to try again
	wait    time.Duration // the pause before the next try if the store cannot be reached; 0: it can be reached
	line    line
	classes classes
}

func (p *pump[T]) run() {
	defer p.line.reach(p.opts, nil)
	for {
		select {
		case <-p.wakes:
			p.more = true
		default:
		}
		var tokens <-chan time.Time
		if next := p.classes.next; !next.IsZero() {
			if tokens = time.After(time.Until(next)); !time.Now().Before(next) {
				p.more, p.classes.next = true, time.Time{}
			}
		}
		left := time.Until(p.retry)
		s, some := p.take(left <= 0)
		p.entry = p.share.enter(p.queue, time.Now())
		want := p.want(s, some)
		turns := (len(some) > 0 || want.Max > 0) && (p.wait == 0 || left <= 0)
		if turns {
			p.turn(s, some, want)
		}
		if p.entry != barred {
			p.share.exit(p.queue)
		}
		if turns {
			continue
		}
		p.again = append(p.again, some...)
		if len(p.again) == 0 && want.Max == 0 {
			p.line.reach(p.opts, nil)
			p.wait = 0
			select {
			case <-p.quit:
				return // this was the last turn
			default:
			}
		}
		var retry <-chan time.Time
		if left > 0 {
			retry = time.After(left)
		}
		quit := p.quit
		if len(p.again) > 0 || p.wait > 0 {
			quit = nil
		}
		select {
		case <-p.wakes:
			p.more = true
		case <-p.ended:
		case <-tokens:
		case <-retry:
		case <-quit:
		}
	}
}

// take takes ends of one session, at most one for each item, and returns the session. Without
// ends, it returns the current session, or nil.
func (p *pump[T]) take(again bool) (s *session, some []*ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, once, rest := p.ends, map[ItemID]bool{}, []*ending(nil)
	if again {
		all, p.again = append(p.again, all...), nil
	}
	for _, x := range all {
		if s == nil {
			s = x.run.session
		}
		if x.run.session != s || once[x.end.ID] || len(some) == MaxBatch {
			rest = append(rest, x)
			continue
		}
		once[x.end.ID] = true
		some = append(some, x)
	}
	if p.ends = rest; s == nil {
		s = p.session.Load()
	}
	return s, some
}

// want says how much can be claimed.
func (p *pump[T]) want(s *session, some []*ending) (want Want) {
	if s == nil || s != p.session.Load() || s.ctx.Err() != nil || p.running.Err() != nil || p.deferred() || p.entry == barred {
		return want
	}
	if p.entry == only {
		if p.more || !p.classes.full && p.classes.next.IsZero() {
			want = Want{Max: 1, Alone: true}
		}
		return want
	}
	if !p.more && !((s.limited || p.classes.full) && len(some) > 0) {
		return want
	}
	p.mu.Lock()
	room := p.opts.MaxConcurrency - len(p.runs)
	for _, x := range some {
		if p.runs[x.end.ID] == x.run {
			room++
		}
	}
	p.mu.Unlock()
	room += p.here.Stats().Suspended
	want.Max = max(0, min(MaxBatch, room+p.mayClaimAhead(s)))
	want.Ahead = min(want.Max, want.Max-room)
	want.Ahead = max(0, want.Ahead)
	if len(p.opts.Lanes) > 1 && p.opts.Ageing > 0 && p.low >= 3 {
		want.Aged = p.opts.Ageing
	}
	return want
}

// turn makes one call of the store.
func (p *pump[T]) turn(s *session, some []*ending, want Want) {
	ends := make([]End, len(some))
	for n, x := range some {
		x.end.HandOver = x.run.row < maxRow && p.entry == open && !p.deferred() && p.running.Err() == nil
		if x.end.Patience = 0; x.busy%8 == 7 { // calls that wait in line never leave the lock free
			x.end.Patience = 20 * time.Millisecond
		}
		ends[n] = x.end
	}
	var t Turned
	began := time.Now()
	err := p.call(&p.line, s, func(ctx context.Context) (err error) {
		t, err = p.store.Turn(ctx, s.claimer(), ends, want)
		return err
	})
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		p.wait = min(max(2*p.wait, 10*time.Millisecond), p.opts.Poll)
		p.retry = time.Now().Add(p.wait)
		if s.ctx.Err() == nil {
			p.again = append(some, p.again...)
			return
		}
		t.Ends = make([]Ended, len(some)) // they are lost
	}
	if err == nil {
		p.wait = 0
		p.turns.note(began)
	}
	if want.Alone && len(t.Items) == 0 && err == nil {
		if len(t.Waits) == 0 {
			p.share.free(p.queue, 0) // another process has the item
		} else {
			p.more = false
			p.await(t.Waits, 0)
		}
	}
	if want.Max > 0 && err == nil && !want.Alone {
		count := len(t.Items)
		for _, e := range t.Ends {
			if e.Next != nil {
				count++
			}
		}
		if p.more = count >= want.Max-want.Ahead; !p.more { // perhaps none was ahead
			p.await(t.Waits, count)
		}
		if p.low += len(t.Items); want.Aged > 0 && len(t.Items) > 0 {
			p.low = 0
		}
	}
	var told []*ending
	var outs []Ended
	for n, x := range some {
		if t.Ends[n].Outcome == OutcomeBusy {
			p.again = append(p.again, x)
			p.retry = time.Now().Add(time.Millisecond << min(x.busy, 5))
			x.busy++
			continue
		}
		told, outs = append(told, x), append(outs, t.Ends[n])
		p.leave(x.run)
	}
	promoted := false
	for n, x := range told {
		if next := outs[n].Next; next != nil {
			p.start(s, *next, x.run.row+1, false)
		}
		promoted = promoted || outs[n].Promoted && !p.classes.throttled[x.run.item.Class] || x.run.state.Load() == withdrawn
	}
	for _, i := range t.Items {
		p.start(s, i, 0, want.Alone)
	}
	for n, x := range told {
		if outs[n].Outcome == OutcomeEnded || outs[n].Outcome == OutcomeAlready && x.run.finished.Load() {
			p.metrics.ended.Add(1)
			p.metrics.ends.add(time.Since(x.since))
		}
		p.tell(x.run.item, x.end, outs[n], x.run.finished.Load())
	}
	if promoted {
		p.wake(true)
	}
	if slices.ContainsFunc(outs, func(e Ended) bool { return e.State&(Finished|Halted) != 0 }) {
		p.tellWaiters()
	}
}

// leave frees the slot of a run.
func (p *pump[T]) leave(r *run) {
	if r.release != nil {
		r.release()
	}
	p.mu.Lock()
	started := r.store != nil // false for an orphan
	if p.runs[r.item.ID] == r {
		delete(p.runs, r.item.ID)
	}
	p.mu.Unlock()
	if r.alone {
		p.share.free(p.queue, 0)
	}
	if started {
		p.share.exit(p.queue)
	}
}

func (q *queue[T]) deferred() bool { return q.opts.DeferOn != "" && q.opts.Sink.Has(q.opts.DeferOn) }

// start runs an item that was claimed.
func (p *pump[T]) start(s *session, i Item, row int, alone bool) {
	t := &task[T]{run: &run{queue: p.opts.Name, store: p.store, item: i, session: s, row: row, alone: alone, maxResult: p.opts.MaxResult}}
	p.metrics.claimed.Add(1)
	p.metrics.claims.add(i.Started.Sub(i.RunAt))
	p.share.add(alone)
	p.mu.Lock()
	p.runs[i.ID] = t.run
	early := len(p.runs) > p.opts.MaxConcurrency
	p.mu.Unlock()
	if early {
		p.withdraw(t.run)
	}
	var err error
	end, refused := p.policy.refuse(i)
	if !refused {
		if t.value, err = p.decode(i); err != nil {
			end, refused = p.policy.dead(err.Error()), true
		}
	}
	if !refused {
		end = End{Kind: EndGivenBack} // the end of an item that cannot start
		t.release = context.AfterFunc(s.ctx, func() { t.know(p.here.Control, 0, "", ErrLeaseLost) })
		if !p.deferred() { // no signal has deferred the queue since the claim
			op, err := p.here.Enqueue(context.WithValue(context.Background(), runKey{}, t.run), t)
			if err == nil {
				t.know(p.here.Control, op, "", nil)
				return
			}
		}
	}
	p.finish(t.run, end)
}

// done ends the claim of an operation that has ended.
func (q *queue[T]) done(o core.Snapshot) {
	r := o.Item.(*task[T]).run
	e := q.policy.after(r.last(), o.Status, o.Err, rand.Float64())
	if givenBack(r, o) {
		e = End{Kind: EndGivenBack}
	}
	if e.Kind == EndDone {
		e.Result = r.returned()
	}
	q.finish(r, e)
}

// finish lets the pump record the end of a claim. If the store cannot be reached, the pump
// tries again until the lease is lost.
func (q *queue[T]) finish(r *run, e End) {
	e.ID, e.Key, e.Token = r.item.ID, r.item.Key, r.item.Token
	q.mu.Lock()
	q.ends = append(q.ends, &ending{run: r, end: e, since: time.Now()})
	q.mu.Unlock()
	select {
	case q.ended <- struct{}{}:
	default:
	}
}

var kindOf = map[State]core.Kind[Item]{Done: ItemSucceeded, Retry: ItemRetried, Dead: ItemFailed, Halted: ItemFailed, Cancelled: ItemCancelled, Ready: ItemReturned, 0: ItemFenced}

// tell raises the signal about the end of a claim.
func (q *queue[T]) tell(i Item, e End, out Ended, finished bool) {
	i.Data, i.State = nil, out.State
	if e.Kind == EndSnoozed && out.State == Ready {
		i.Note = e.Err
	} else {
		i.Err = cmp.Or(e.Err, i.Err)
	}
	if out.Outcome == OutcomeFenced && finished && e.Kind == EndDone {
		i.State = Done
	}
	kind := kindOf[i.State]
	if i.State == Ready && e.Kind == EndSnoozed {
		kind = ItemSnoozed
	}
	if i.State == 0 {
		q.fenced.Add(1)
	}
	kind.Raise(q.opts.Sink, q.opts.Name, i)
}
