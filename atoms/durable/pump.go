package durable

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// A pump makes turns: it takes all waiting ends and all free slots, calls the store, starts the claimed items, and
// then reports the ends.
//
// If the store allows it, a second turn begins while one is under way, if enough ends wait. Both commit in any order, and
// their answers come in any order, so two turns of a process are like the turns of two processes:
//
//   - Fences: an end is in one turn only, and the store compares its token under the lock of its row.
//   - Order of a key: the end of an item and the promotion of the next one are one transaction, under the lock of the key. So
//     the next item is claimed only after that commit, by whichever turn.
//   - Ahead: a turn takes no slot that the other one may fill. Ends that are not yet recorded free slots only for their own turn.
//   - Limits: the store decides them under the lock of the queue, so one turn would wait for the other, and none is begun. That a
//     class counts may be known to the store only. If it had no room, an end of the other turn may have made some: the next turn
//     looks again.
//   - News: only the last turn that was begun says that there is nothing to claim, and only if nothing came since.
//   - Lost answers: a turn counts as over when those before it are over. So no beat gives back what the answer of a turn brings.
type pump struct {
	loop    *loop
	queue   *queue
	quit    chan struct{} // is closed when all bodies have ended
	last    time.Time     // when ends that are not recorded are given up; known when quit is closed
	gaveUp  error         // names the items of these ends; known when run has returned
	more    bool          // there may be items to claim
	dry     bool          // there was none to claim ahead, since the last end or wake-up
	news    int           // counts what may have changed that, and turns that claim
	work    []*turn
	came    chan *turn // turns with their answers
	most    int        // turns at work at once
	turns   mean
	noAhead atomic.Int64  // the time until which nothing is claimed ahead, in nanoseconds after the share began
	entry   entry         // what the turn may claim
	low     int           // items claimed since the last item that was claimed for its age
	again   []*ending     // ends that no turn has recorded
	retry   time.Time     // the next turn is not before this time
	wait    time.Duration // the pause before it, if the store cannot be reached; 0: it can be reached
	line    line
	refused line // of turns with an end that was refused before
	others  bool // the last turn had such an end: the next one is for others
	classes classes
	shadows map[string]*shadowed // by class; of those in which an item of this process would have waited
}

// manyEnds is how many ends are worth a second turn: so many take as long in the store as a commit.
const manyEnds = 50

// A turn is one call of the store.
type turn struct {
	s      *session
	some   []*ending
	want   Want
	number int64
	news   int
	beside bool // another turn was at work meanwhile
	by     *line
	exits  bool // it may claim
	began  time.Time
	Turned
	err error
}

func (p *pump) run() {
	defer p.line.reach(p.queue.opts, nil)
	defer p.refused.reach(p.queue.opts, nil)
	for {
		for len(p.work) > 0 && !p.another() {
			select {
			case t := <-p.came:
				p.end(t)
			case <-p.queue.ended:
			}
		}
		quit, over := p.quit, false
		select {
		case <-quit: // all ends are there to be taken
			quit, over = nil, true
		default:
		}
		select {
		case <-p.queue.wakes:
			p.woken()
		default:
		}
		var tokens <-chan time.Time
		if next := p.classes.next; !next.IsZero() {
			if tokens = time.After(time.Until(next)); !time.Now().Before(next) {
				p.woken()
				p.classes.next = time.Time{}
			}
		}
		now := time.Now()
		tell := p.tellShadows(now)
		stopped := p.wait > 0 && now.Before(p.retry)
		s, some, next := p.take(now, stopped)
		p.entry = p.loop.share.enter(p.queue, now)
		want := p.want(s, some)
		turns := len(some) > 0 || want.Max > 0 && !stopped
		if turns {
			p.begin(s, some, want)
			continue
		}
		if p.entry != barred {
			p.loop.share.exit(p.queue)
		}
		if len(p.work) > 0 {
			p.end(<-p.came)
			continue
		}
		if len(p.again) == 0 && want.Max == 0 {
			p.line.reach(p.queue.opts, nil)
			p.refused.reach(p.queue.opts, nil)
			p.wait = 0
		} else if stopped {
			next = p.retry
		}
		if over {
			if len(p.again) == 0 || !now.Before(p.last) {
				p.giveUp()
				return
			}
			if next.After(p.last) {
				next = p.last
			}
		}
		if next.IsZero() || !tell.IsZero() && tell.Before(next) {
			next = tell
		}
		var retry <-chan time.Time
		if !next.IsZero() {
			retry = time.After(time.Until(next))
		}
		select {
		case <-p.queue.wakes:
			p.woken()
		case <-p.queue.ended:
		case <-tokens:
		case <-retry:
		case <-quit:
		}
	}
}

// woken notes that there may be something to claim.
func (p *pump) woken() {
	p.news++
	p.more, p.dry = true, false
}

// another says whether one more turn may begin beside those at work. It is worth its commit only with many ends.
func (p *pump) another() bool {
	if len(p.work) >= p.most || p.wait > 0 || p.work[0].s.inLine {
		return false
	}
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return len(p.queue.ends) >= manyEnds
}

// want says how much can be claimed.
func (p *pump) want(s *session, some []*ending) (want Want) {
	if s == nil || s != p.loop.session.Load() || s.ctx.Err() != nil || p.loop.running.Err() != nil || p.queue.deferred() || p.entry == barred || len(some) > 0 && some[0].refused > 0 {
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
	p.queue.mu.Lock()
	room := p.queue.opts.MaxConcurrency - len(p.queue.runs)
	for _, x := range some {
		if p.queue.runs[x.end.ID] == x.run {
			room++
		}
	}
	p.queue.mu.Unlock()
	room += p.queue.here.Stats().Suspended
	for _, t := range p.work {
		room -= max(0, t.want.Max-len(t.some))
	}
	want.Max = max(0, min(MaxBatch, room+p.mayClaimAhead(s)))
	want.Ahead = min(want.Max, want.Max-room)
	want.Ahead = max(0, want.Ahead)
	if p.low >= 3 && p.queue.opts.Ageing > 0 && len(s.claimer().Lanes) > 1 {
		want.Aged = p.queue.opts.Ageing
	}
	return want
}

// begin begins a turn.
func (p *pump) begin(s *session, some []*ending, want Want) {
	t := &turn{s: s, some: some, want: want, number: p.loop.begunTurns.Add(1), by: &p.line, exits: p.entry != barred, began: time.Now()}
	for _, other := range p.work {
		t.beside, other.beside = true, true
	}
	if p.work = append(p.work, t); want.Max > 0 {
		p.news++
	}
	t.news = p.news
	ends, most := make([]End, len(some)), maxRow
	if p.more || want.Max > 0 { // others may wait
		most = shortRow
	}
	for n, x := range some {
		x.end.HandOver = x.run.row < most && p.entry == open && !p.queue.deferred() && p.loop.running.Err() == nil
		if x.end.Patience = 0; x.busy%8 == 7 { // calls that wait in line never leave the lock free
			x.end.Patience = 20 * time.Millisecond
		}
		ends[n] = x.end
	}
	want.Gates = p.queue.gates()
	if len(some) > 0 && some[0].refused > 0 {
		t.by = &p.refused
	}
	node := s.claimer()
	call := func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.queue.opts.Lease/4)
		defer cancel()
		t.Turned, t.err = p.queue.store.Turn(ctx, node, ends, want)
	}
	if p.most <= 1 {
		call()
		p.end(t)
		return
	}
	go func() { call(); p.came <- t }()
}

// end takes the answer of a turn.
func (p *pump) end(t *turn) {
	s, some, want, by, err := t.s, t.some, t.want, t.by, p.loop.answered(t.by, t.s, t.err)
	if t.exits {
		defer p.loop.share.exit(p.queue)
	}
	p.work = slices.DeleteFunc(p.work, func(x *turn) bool { return x == t })
	over := p.loop.begunTurns.Load()
	for _, x := range p.work {
		over = min(over, x.number-1)
	}
	defer p.loop.overTurns.Store(over)
	if err != nil && !guard.Is(err, ErrLeaseLost) {
		if want.Max > 0 { // there may be claims that nobody knows
			p.loop.doubt.Store(true)
			p.queue.beatNow()
		}
		if by == &p.line {
			p.wait = min(max(2*p.wait, 10*time.Millisecond), p.loop.every)
			p.retry = time.Now().Add(p.wait)
		}
		if s.ctx.Err() == nil {
			p.refuse(some, err)
			return
		}
		t.Ends = make([]Ended, len(some)) // they are lost
	}
	if err == nil {
		p.wait = 0
		p.turns.note(t.began)
	}
	if want.Alone && len(t.Items) == 0 && err == nil {
		if len(t.Waits) == 0 {
			p.loop.share.free(p.queue, true) // another process has the item, or there is a limit
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
		p.dry = count == 0 && want.Max == want.Ahead && t.news == p.news
		if count >= want.Max-want.Ahead { // perhaps none was ahead
			p.more = true
		} else if t.news == p.news {
			p.more = t.beside && len(t.Waits) > 0
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
			x.again, x.err = time.Now().Add(time.Millisecond<<min(x.busy, 5)), errBusy
			x.busy++
			continue
		}
		told, outs = append(told, x), append(outs, t.Ends[n])
		p.leave(x.run)
	}
	promoted := false // there is something to claim
	for n, x := range told {
		if next := outs[n].Next; next != nil {
			p.start(s, *next, x.run.row+1, false)
		}
		promoted = promoted || outs[n].Promoted && !p.classes.throttled[x.run.item.Class] || x.atOnce(outs[n]) && !p.classes.throttled[x.class()] || x.run.state.Load() == withdrawn || x.freed(outs[n]) ||
			min(x.end.Calls, x.end.Cost) < 0 && p.classes.throttled[x.run.item.Class]
	}
	for _, i := range t.Items {
		p.start(s, i, 0, want.Alone)
	}
	for n, x := range told {
		if outs[n].Outcome == OutcomeEnded || outs[n].Outcome == OutcomeAlready && x.run.finished.Load() {
			p.queue.metrics.ended.Add(1)
			p.queue.metrics.ends.add(time.Since(x.since))
		}
		p.queue.tell(x.run, x.end, outs[n])
	}
	if promoted {
		p.queue.wake(true)
	}
	if slices.ContainsFunc(outs, func(e Ended) bool { return e.State&(Finished|Halted) != 0 }) {
		p.queue.tellWaiters()
	}
}

func (q *queue) deferred() bool { return q.opts.DeferOn != "" && q.opts.Sink.Has(q.opts.DeferOn) }

// start runs an item that was claimed.
func (p *pump) start(s *session, i Item, row int, alone bool) {
	carried := i.open().Carried
	t := &task{run: &run{queue: p.queue.opts.Name, store: p.queue.store, item: i, session: s, row: row, alone: alone, maxResult: p.queue.opts.MaxResult, flows: p.queue.flows}}
	p.queue.metrics.claimed.Add(1)
	p.queue.metrics.claims.add(i.Started.Sub(i.RunAt))
	p.loop.share.add(alone)
	t.until = p.claimed(i)
	p.queue.mu.Lock()
	p.queue.runs[i.ID] = t.run
	early := len(p.queue.runs) > p.queue.opts.MaxConcurrency
	p.queue.mu.Unlock()
	if early {
		p.withdraw(t.run)
	}
	var err error
	end, refused := p.queue.policy.refuse(i)
	if refused = refused && i.Flow < 2; !refused {
		if t.value, err = p.queue.decode(i); err != nil && i.Flow == 2 {
			t.wrong = err
		} else if err != nil {
			end, refused = p.queue.policy.dead(guard.Text(err)), true
		} else if p.queue.opts.Show != nil {
			t.text = func() string { return p.queue.text(t.value) }
		}
	}
	if !refused {
		end = End{Kind: EndGivenBack} // the end of an item that cannot start
		t.release = context.AfterFunc(s.ctx, func() { t.know(p.queue.here.Control, 0, "", ErrLeaseLost) })
		if !p.queue.deferred() && !p.queue.closed(i.Class) { // no signal has deferred the queue or the class since the claim
			op, err := p.queue.here.Enqueue(p.queue.carry(context.WithValue(context.Background(), runKey{}, t.run), i, carried), t)
			if err == nil {
				t.know(p.queue.here.Control, op, "", nil)
				return
			}
		}
	}
	p.queue.finish(t.run, end)
}
