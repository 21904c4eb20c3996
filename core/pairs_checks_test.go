package core_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// settle waits until nothing moves, and looks.
func (w *pairsWorld) settle() {
	synctest.Wait()
	looked := make(chan struct{})
	go func() { // as a callback may end the goroutine
		defer close(looked)
		w.look()
	}()
	<-looked
}

// look checks what must hold while nothing moves: the books, the limits, and that nothing waits that could go on.
func (w *pairsWorld) look() {
	made, now := w.made, time.Now()
	s := w.Stats()
	v := pairsView{pairsWorld: w, s: s, alive: slices.Collect(w.Operations(core.OperationQuery{Status: core.StatusAlive}))}
	v.books()
	v.limits()
	v.pending()
	v.suspended()
	v.rooms()
	w.locked(func() {
		if len(v.faults) > 0 && made == w.made && now.Equal(time.Now()) { // no callback was called on the way
			w.fatalf("%s\n%v", strings.Join(v.faults, "\n"), s)
		}
		w.limit, w.surplus = s.Limit, min(w.surplus, s.Running)
		for _, r := range w.rooms {
			r.refused = -1
		}
	})
}

// pairsView is what is seen while nothing moves.
type pairsView struct {
	*pairsWorld
	s      core.Stats
	alive  []core.Snapshot
	faults []string
}

func (v *pairsView) faultf(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func (v *pairsView) count(is func(core.Snapshot) bool) (n int) {
	for _, o := range v.alive {
		if is(o) {
			n++
		}
	}
	return n
}

func (v *pairsView) books() {
	if err := coretest.CheckBooks(v.s); err != nil {
		v.faultf("%v", err)
	}
	for status, want := range map[core.Status]int{core.StatusPending: v.s.Pending, core.StatusRunning: v.s.Running, core.StatusSuspended: v.s.Suspended} {
		if got := v.count(func(o core.Snapshot) bool { return o.Status == status }); got != want {
			v.faultf("%d operations are %v, but Stats says %d", got, status, want)
		}
	}
	pending, running := 0, 0
	for _, l := range v.s.Lanes {
		pending, running = pending+l.Pending, running+l.Running
	}
	if len(v.s.Lanes) > 0 && (pending != v.s.Pending || running != v.s.Running) {
		v.faultf("the lanes have %d pending and %d running", pending, running)
	}
}

func (v *pairsView) limits() {
	tracked, failed := v.opts.MaxTracked, v.opts.MaxFailed
	if failed == 0 && tracked < 0 {
		failed = -1
	}
	most := v.s.Pinned
	for _, n := range []int{tracked, failed} {
		if n == 0 {
			n = 200
		}
		most += max(0, n)
	}
	if v.s.Tracked > most {
		v.faultf("%d operations in the window, want at most %d", v.s.Tracked, most)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if most := max(v.s.Limit, v.surplus); v.s.Running > most {
		v.faultf("%d run, want at most %d", v.s.Running, most)
	}
	if v.counts["all"] > v.s.Running {
		v.faultf("%d bodies run, but Stats says %d", v.counts["all"], v.s.Running)
	}
}

// full says what keeps an item from starting now, other than earlier items with its key.
func (v *pairsView) full(lane core.Lane, class core.Class, key string) bool {
	has := func(pattern string) bool { return pattern != "" && (v.opts.Sink.Has(pattern) || v.Has(pattern)) }
	switch {
	case v.s.Paused, v.s.Running+max(0, v.s.Suspended-v.suspends) >= v.s.Limit, has(v.opts.DeferOn), has(lane.DeferOn):
		return true
	}
	running := func(is func(core.Snapshot) bool) int {
		return v.count(func(o core.Snapshot) bool { return o.Status == core.StatusRunning && is(o) })
	}
	return lane.Limit > 0 && running(func(o core.Snapshot) bool { return o.Lane == lane.Name }) >= lane.Limit ||
		class.Limit > 0 && running(func(o core.Snapshot) bool { return o.Class == class.Name }) >= class.Limit ||
		key != "" && v.count(func(o core.Snapshot) bool { return o.Key == key && o.Status != core.StatusPending }) >= v.perKey
}

// before reports whether an earlier item with that key is pending in the lane.
func (v *pairsView) before(lane, key string, id core.OperationID) bool {
	return key != "" && v.count(func(o core.Snapshot) bool {
		return o.Status == core.StatusPending && o.Key == key && o.Lane == lane && (id == 0 || o.ID < id)
	}) > 0
}

// pending checks that no pending operation could start, and that Explain says what each waits for.
func (v *pairsView) pending() {
	for _, o := range v.alive {
		if o.Status != core.StatusPending {
			continue
		}
		lane, class := v.places(o.Item.(*pairsCall))
		x, _ := v.Explain(o.ID)
		if !v.full(lane, class, o.Key) && !v.before(o.Lane, o.Key, o.ID) {
			v.faultf("operation %d, item of call %d, waits though it could start: %v", o.ID, o.Item.(*pairsCall).number, x)
		} else if len(x.Reasons) == 0 {
			v.faultf("Explain does not say why operation %d waits", o.ID)
		}
	}
}

// suspended checks that Explain says what each suspended operation waits for, and that none waits for a slot that is free.
func (v *pairsView) suspended() {
	for _, o := range v.alive {
		if o.Status != core.StatusSuspended {
			continue
		}
		x, _ := v.Explain(o.ID)
		var kinds []core.ReasonKind
		for _, r := range x.Reasons {
			if r.Operation == o.ID {
				kinds = append(kinds, r.Kind)
			}
		}
		if len(kinds) == 0 || len(kinds) == 1 && kinds[0] == core.ReasonResuming {
			v.faultf("suspended operation %d does not go on, and Explain does not say why: %v", o.ID, x)
		}
	}
}

// rooms checks that items which wait for room, or were refused, have no room and could not start.
func (v *pairsView) rooms() {
	v.mu.Lock()
	rooms := slices.Clone(v.pairsWorld.rooms)
	made, inside := v.made, v.inside > 0
	v.mu.Unlock()
	for i, r := range rooms {
		if r.unknown || (!r.waits || inside) && r.refused != made { // inside a callback a call may be held up by that
			continue
		}
		lane, class := v.places(r.pairsCall)
		key := r.key
		if !v.keyed {
			key = ""
		}
		depth := cmp.Or(class.Depth, lane.Depth, v.opts.MaxQueued, 1024)
		queued := v.count(func(o core.Snapshot) bool {
			return o.Status == core.StatusPending && o.Lane == lane.Name && o.Class == class.Name
		})
		earlier := key != "" && slices.ContainsFunc(rooms[:i], func(e *pairsRoom) bool { return e.waits && e.key == key && (lane.Name == "" || e.lane == r.lane) })
		switch {
		case v.s.Closed && r.waits:
			v.faultf("call %d waits for room though the intake has ended", r.number)
		case queued < depth:
			v.faultf("call %d gets no room, though %d of %d are pending", r.number, queued, depth)
		case !v.full(lane, class, key) && !v.before(lane.Name, key, 0) && !earlier:
			v.faultf("call %d gets no room, though it could start", r.number)
		}
	}
}

// checkEnded checks that everything has ended, a long time after all from outside that could hinder it.
func (w *pairsWorld) checkEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	alive := 0
	for o := range w.Operations(core.OperationQuery{Status: core.StatusAlive}) {
		alive++
		x, _ := w.Explain(o.ID)
		if !slices.ContainsFunc(x.Reasons, func(r core.Reason) bool { return r.Kind == core.ReasonDeferred }) { // by what an operation has raised or holds
			w.fatalf("operation %d waits for ever: %v", o.ID, x)
		}
	}
	for c := range w.open {
		if alive == 0 && !w.Has("wait, wait.lane") { // which an operation in the window has raised
			w.fatalf("call %d %s does not return: %v", c.number, c.kind, w.Stats())
		}
	}
}

// checkClosed checks the end.
func (w *pairsWorld) checkClosed() {
	s := w.Stats()
	if err := coretest.CheckBooks(s); err != nil || s.Pending+s.Running+s.Suspended+s.Tracked+s.Pinned != 0 || !s.Closed || w.counts["all"] != 0 {
		w.fatalf("after Close: %v, %v; want nothing left", s, err)
	}
	outcomes := make(map[core.Status]uint64)
	started := make(map[string]time.Time) // by place: the newest start
	ids := make([]core.OperationID, 0, len(w.final))
	for id, o := range w.final {
		outcomes[o.Status]++
		ids = append(ids, id)
	}
	for status, n := range map[core.Status]uint64{core.StatusSucceeded: s.Succeeded, core.StatusFailed: s.Failed, core.StatusCancelled: s.Cancelled, core.StatusRefused: s.Refused, core.StatusDropped: s.Dropped} {
		if outcomes[status] != n {
			w.fatalf("OnFinalized was called for %d operations that were %v, but Stats says %v", outcomes[status], status, s)
		}
	}
	if w.opts.OnDone != nil && uint64(len(w.returned)) != s.Enqueued {
		w.fatalf("OnDone was called for %d operations, but Stats says %v", len(w.returned), s)
	}
	slices.Sort(ids)
	for _, id := range ids {
		o := w.final[id]
		if place, ordered := w.place(o.Lane, o.Class, o.Key); ordered && !o.Started.IsZero() {
			if o.Started.Before(started[place]) {
				w.fatalf("operation %d started before an earlier one of %s", id, place)
			}
			started[place] = o.Started
		}
	}
	newest := make(map[string]core.OperationID)
	for _, r := range w.rooms {
		lane, class := w.places(r.pairsCall)
		place, ordered := w.place(lane.Name, class.Name, r.key)
		if place += " of class " + class.Name; ordered && r.ordered && r.id != 0 { // each class has room of its own
			if r.id < newest[place] {
				w.fatalf("call %d got room as operation %d, before an earlier one of %s", r.number, r.id, place)
			}
			newest[place] = r.id
		}
	}
}

// place names the items whose order is promised: those of a key in a lane, or, without keys, those of a lane and class.
func (w *pairsWorld) place(lane, class, key string) (place string, ordered bool) {
	if w.keyed {
		return fmt.Sprintf("key %q in lane %q", key, lane), key != "" && w.perKey == 1
	}
	return fmt.Sprintf("class %q in lane %q", class, lane), true
}
