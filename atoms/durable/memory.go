package durable

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Memory returns a store in memory, for tests: nothing in it survives the process. It has one
// mutex, and every call reads all items of its queue. It uses package time, so it runs in a
// synctest bubble. It wakes up no Wait: that looks at each Poll, so compare times of items, not the time when Wait
// returned. To imitate several processes, make several queues on one store. It owns no
// goroutine and needs no closing.
func Memory() Store { return &memory{queues: map[string]*memQueue{}} }

type memory struct {
	mu     sync.Mutex
	queues map[string]*memQueue
	id     ItemID
	token  int64
	node   NodeID
	seq    int64
}

type memQueue struct {
	items  []*memItem // sorted by ID
	nodes  map[NodeID]*memNode
	unique map[string]memUnique
	class  map[string]*memClass
	kept   []*Signal       // sorted by Seq
	pauses map[Pause]Pause // by class and key
	every  time.Duration   // of KeyRate
	burst  int
	full   map[string]time.Time // when the bucket of a key is full
}

type memItem struct {
	Item
	on       *memNode // while Running
	attempts []Attempt
	result   []byte
	flow     memFlow
	late     time.Duration // Shadow of the claim that is being made
}

type memNode struct {
	Node
	expires time.Time
	note    string
}

type memUnique struct {
	id    ItemID
	until time.Time
}

// call runs a method: under the mutex, with the queue and the time, unless ctx has ended.
func call[R any](ctx context.Context, m *memory, queue string, method func(q *memQueue, now time.Time) (R, error)) (r R, err error) {
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queues[queue]
	if q == nil {
		q = &memQueue{nodes: map[NodeID]*memNode{}, unique: map[string]memUnique{}, class: map[string]*memClass{}, pauses: map[Pause]Pause{}, full: map[string]time.Time{}}
		m.queues[queue] = q
	}
	return method(q, time.Now().Truncate(time.Microsecond))
}

func (q *memQueue) find(id ItemID) *memItem {
	i, ok := slices.BinarySearchFunc(q.items, id, func(i *memItem, id ItemID) int { return cmp.Compare(i.ID, id) })
	if !ok {
		return nil
	}
	return q.items[i]
}

// in returns the items in one of the states for which ok returns true.
func (q *memQueue) in(states State, ok func(*memItem) bool) (found []*memItem) {
	for _, i := range q.items {
		if i.State&states != 0 && ok(i) {
			found = append(found, i)
		}
	}
	return found
}

func every(*memItem) bool { return true }

// head returns the head of a key, or nil.
func (q *memQueue) head(key string) *memItem {
	n := slices.IndexFunc(q.items, func(i *memItem) bool {
		return key != "" && i.Key == key && i.State&(Ready|Running|Retry|Halted) != 0
	})
	if n < 0 {
		return nil
	}
	return q.items[n]
}

// enter lets an item wait.
func (q *memQueue) enter(i *memItem) {
	if i.State = Blocked; q.head(i.Key) == nil {
		i.State = Ready
	}
}

// space lets the head of a key wait for a token of the key.
func (q *memQueue) space(i *memItem, now time.Time) {
	if next := q.nextOf(i.Key, now); next.After(i.RunAt) {
		i.RunAt = next
	}
}

// nextOf is when a key has its next token; zero: it has one.
func (q *memQueue) nextOf(key string, now time.Time) (next time.Time) {
	if full, ok := q.full[key]; ok && q.every > 0 {
		next = minTime(full, now.Add(q.every*time.Duration(q.burst))).Add(-q.every * time.Duration(q.burst-1))
	}
	return next
}

// book takes a token of the key for a claim that ends now.
func (q *memQueue) book(i *memItem, now time.Time) {
	if i.Key != "" && q.every > 0 {
		full := minTime(q.full[i.Key], now.Add(q.every*time.Duration(q.burst)))
		if full.Before(i.Started) {
			full = i.Started
		}
		q.full[i.Key] = full.Add(q.every)
	}
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// leave gives an item a state in which it does not run. If the item is no longer the head of
// its key, leave promotes the key and returns the new head.
func (q *memQueue) leave(i *memItem, state State, now time.Time) (promoted *memItem) {
	before := i.State
	i.State, i.on, i.Note = state, nil, ""
	if state&(Finished|Halted) != 0 {
		i.Ended = now
	}
	if i.Key == "" || before&(Blocked|Dead) != 0 || state&Finished == 0 {
		return nil
	}
	next := q.in(Blocked, func(other *memItem) bool { return other.Key == i.Key })
	if len(next) == 0 {
		return nil
	}
	promoted = slices.MinFunc(next, byRank)
	promoted.State = Ready
	if promoted.RunAt.Before(now) {
		promoted.RunAt = now
	}
	q.space(promoted, now)
	return promoted
}

func byRank(a, b *memItem) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID)) }
func byRunAt(a, b *memItem) int {
	return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
}

// view is the item as the store shows it.
func (i *memItem) view() Item {
	item := i.Item
	item.Token = max(0, i.Token) // below 0 after a lost lease
	item.Data = slices.Clone(i.Data)
	if i.on != nil {
		item.Expires = i.on.expires
	}
	return item
}

func (m *memory) Insert(ctx context.Context, queue string, items []Insert) ([]Inserted, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (done []Inserted, _ error) {
		for _, in := range items {
			if stands, ok := q.stands(in, now); ok {
				done = append(done, stands)
				continue
			}
			m.id++
			i := &memItem{Item: Item{ID: m.id, Key: in.Key, Unique: in.Unique, Enqueued: now}}
			i.fill(in, now)
			if in.Unique != "" {
				q.unique[in.Unique] = memUnique{m.id, now.Add(in.UniqueFor)}
			}
			if q.enter(i); i.State == Ready && in.Rated {
				q.space(i, now)
			}
			q.items = append(q.items, i)
			done = append(done, Inserted{ID: m.id})
		}
		return done, nil
	})
}

// stands reports whether the item is not added, because another one stands, which it may replace.
func (q *memQueue) stands(in Insert, now time.Time) (Inserted, bool) {
	if u := q.unique[in.Unique]; u.until.After(now) {
		old := q.find(u.id)
		waits := old != nil && old.State&Waiting != 0 && old.Flow == 0
		switch {
		case in.Replace && waits && old.Key == in.Key:
			if old.State == Retry {
				old.State = Ready
			}
			old.Attempts, old.Losses, old.Token, old.Err, old.Note, old.Failing = 0, 0, 0, "", "", time.Time{}
			if old.fill(in, now); in.Rated && old.State == Ready {
				q.space(old, now)
			}
			q.unique[in.Unique] = memUnique{u.id, now.Add(in.UniqueFor)}
			return Inserted{ID: u.id, Duplicate: true}, true
		case !in.Replace || waits:
			return Inserted{ID: u.id, Duplicate: true, OtherKey: in.Replace}, true
		}
	}
	if head := q.head(in.Key); in.SkipIfAlive && head != nil {
		return Inserted{ID: head.ID, Duplicate: true}, true
	}
	return Inserted{}, false
}

// fill sets what an Insert says of an item.
func (i *memItem) fill(in Insert, now time.Time) {
	i.Cost = in.Cost
	i.Lane, i.Class, i.Rank, i.Extra, i.Data, i.RunAt = in.Lane, in.Class, in.Rank, in.Extra, slices.Clone(in.Data), now.Add(in.Delay)
	if at := in.RunAt.Truncate(time.Microsecond); at.After(i.RunAt) {
		i.RunAt = at
	}
}

func (m *memory) Join(ctx context.Context, node Node) (NodeID, error) {
	return call(ctx, m, node.Queue, func(q *memQueue, now time.Time) (NodeID, error) {
		m.node++
		for _, c := range node.Classes {
			q.classOf(c.Name).declare(c, now)
		}
		q.every, q.burst = node.KeyEvery, node.KeyBurst
		node.ID, node.Lanes, node.Classes, node.KeyEvery, node.KeyBurst = m.node, slices.Clone(node.Lanes), nil, 0, 0
		q.nodes[node.ID] = &memNode{Node: node, expires: now.Add(node.Lease)}
		return node.ID, nil
	})
}

// end ends a node and returns how many claims it had. Lost says that its lease was lost.
func (q *memQueue) end(n *memNode, lost bool, now time.Time) int {
	delete(q.nodes, n.ID)
	claims := q.in(Running, n.has)
	for _, i := range claims {
		if !lost || i.Losses < LossesAlone {
			i.Attempts--
		}
		if i.Token = -i.Token; !lost { // no lost lease can be taken off
			i.Token = 0
		} else {
			i.attempted(-i.Token, EndLost, lostClaim, now)
			if i.Losses++; i.Losses >= LossesAlone {
				i.RunAt = now.Add(lossPause(i.Losses))
			}
		}
		q.book(i, now)
		q.leave(i, Ready, now)
		if i.Key != "" {
			q.space(i, now)
		}
	}
	return len(claims)
}

func (n *memNode) has(i *memItem) bool { return i.on == n }

func (m *memory) Beat(ctx context.Context, node Node, note string) (Beaten, error) {
	return call(ctx, m, node.Queue, func(q *memQueue, now time.Time) (b Beaten, _ error) {
		for _, id := range slices.Sorted(maps.Keys(q.nodes)) {
			if n := q.nodes[id]; !n.expires.After(now) {
				b.Lost = append(b.Lost, Lost{Name: n.Name, Claims: q.end(n, true, now)})
			}
		}
		n := q.nodes[node.ID]
		if n == nil {
			b.Gone = true
			return b, ErrLeaseLost
		}
		n.expires, n.note, b.Paused = now.Add(node.Lease), note, q.isPaused("", "", now)
		for _, i := range q.in(Running, n.has) {
			b.Claims = append(b.Claims, Held{i.ID, i.Token, i.Cancel, i.Key})
		}
		b.Strays = q.strays(now)
		b.Classed = len(q.in(Ready|Retry, func(i *memItem) bool { return i.Class != "" })) > 0
		b.Due = len(q.in(Ready|Retry, func(i *memItem) bool { return !i.RunAt.After(now) })) > 0
		b.Suspect = len(q.in(Ready|Retry, func(i *memItem) bool { return i.Losses >= LossesAlone && !i.RunAt.After(now) })) > 0
		return b, nil
	})
}

// strays are the lanes that no node has and in which items wait.
func (q *memQueue) strays(now time.Time) (lanes []string) {
	nodes := q.serving(now)
	for _, i := range q.in(Ready|Retry, every) {
		if len(nodes) > 0 && !slices.Contains(lanes, i.Lane) && !slices.ContainsFunc(nodes, func(s Serving) bool {
			return slices.ContainsFunc(s.Node.Lanes, func(l core.Lane) bool { return l.Name == i.Lane })
		}) {
			lanes = append(lanes, i.Lane)
		}
	}
	slices.Sort(lanes)
	return lanes
}

func (m *memory) Leave(ctx context.Context, node Node) error {
	return ignore(call(ctx, m, node.Queue, func(q *memQueue, now time.Time) (claims int, _ error) {
		if n := q.nodes[node.ID]; n != nil {
			claims = q.end(n, false, now)
		}
		return claims, nil
	}))
}

// alive returns a node whose lease is not over, or nil.
func (q *memQueue) alive(id NodeID, now time.Time) *memNode {
	if n := q.nodes[id]; n != nil && n.expires.After(now) {
		return n
	}
	return nil
}

func (m *memory) claim(i *memItem, n *memNode, now time.Time) Item {
	m.token++
	i.State, i.Token, i.Attempts, i.Started, i.Node, i.on, i.Note = Running, m.token, i.Attempts+1, now, n.Name, n, ""
	item := i.view()
	item.Cost, item.Shadow, i.late = 0, i.late, 0
	item.Trial = i.Key != "" && m.queues[n.Queue].pauses[Pause{Key: i.Key}].Auto // one that is not over would keep it from being claimed
	return item
}

func (m *memory) Turn(ctx context.Context, node Node, ends []End, want Want) (Turned, error) {
	return call(ctx, m, node.Queue, func(q *memQueue, now time.Time) (t Turned, _ error) {
		n := q.alive(node.ID, now)
		room := want.Max
		turn := memTurn{memQueue: q, now: now, want: want, lacks: map[string]int64{}}
		next := make([]*memItem, len(ends))
		for at, e := range ends {
			ended := Ended{Outcome: OutcomeFenced}
			if i := q.find(e.ID); i != nil && e.Token > 0 && i.Token == -e.Token && i.State == Ready && e.Kind == EndGivenBack {
				if i.Losses > LossesAlone {
					i.Attempts--
				}
				i.Losses, i.Token, ended = max(0, i.Losses-1), 0, Ended{Outcome: OutcomeAlready, State: Ready}
			} else if i != nil && i.Token == e.Token && i.State != Running {
				ended = Ended{Outcome: OutcomeAlready, State: i.State}
			} else if i != nil && i.Token == e.Token && (e.Kind != EndDone || i.Flow < 2) {
				if c := q.class[i.Class]; c != nil {
					c.bill(e.Calls, e.Cost, now)
				}
				next[at] = q.endClaim(i, e, now)
				if i.State == Done {
					q.endTrial(i.Key, now)
				}
				ended = Ended{Outcome: OutcomeEnded, State: i.State, Promoted: next[at] != nil}
			}
			t.Ends = append(t.Ends, ended)
		}
		for at, next := range next {
			if next == nil || !ends[at].HandOver || n == nil || q.isHeld(next.Key, now) || next.RunAt.After(now) {
				continue
			}
			if i := q.find(ends[at].ID); next.Lane == i.Lane && next.Class == i.Class && (i.Class == "" || len(node.Classes) > 0) && turn.admit(next) {
				item := m.claim(next, n, now)
				t.Ends[at].Next, t.Ends[at].Promoted = &item, false
				room--
			}
		}
		if len(q.in(Waiting|Running, func(i *memItem) bool { return i.Losses > 0 })) > 0 || len(node.Classes) > 0 && turn.counts() {
			room -= want.Ahead
		}
		if want.Max == 0 {
			return t, nil
		}
		if n == nil {
			return t, ErrLeaseLost
		}
		if node.MaxCluster > 0 {
			room = min(room, node.MaxCluster-len(q.in(Running, every)))
		}
		can := func(i *memItem, lane core.Lane) bool { // but for its class
			return i.Lane == lane.Name && (i.Class == "" || len(node.Classes) > 0) && !i.RunAt.After(now) && !q.isHeld(i.Key, now) && (i.Losses >= LossesAlone) == want.Alone &&
				(lane.Limit <= 0 || lane.Limit > len(q.in(Running, func(i *memItem) bool { return i.Lane == lane.Name })))
		}
		due := func(lane core.Lane) []*memItem { // the items of a lane that can be claimed, in order
			items := q.in(Ready|Retry, func(i *memItem) bool { return len(t.Items) < room && can(i, lane) && turn.hasRoom(i) })
			slices.SortFunc(items, byRunAt)
			return items
		}
		var first []*memItem
		for _, lane := range node.Lanes {
			seen := map[string]bool{} // the next one of each class
			first = append(first, slices.DeleteFunc(due(lane), func(i *memItem) bool {
				again := seen[i.Class]
				seen[i.Class] = true
				return again || turn.lack(i) > 0
			})...)
		}
		if want.Aged > 0 && len(first) > 0 {
			if i := slices.MinFunc(first, byRunAt); now.Sub(i.RunAt) >= want.Aged {
				turn.admit(i)
				t.Items = append(t.Items, m.claim(i, n, now))
			}
		}
		for _, lane := range node.Lanes {
			for _, i := range due(lane) {
				if len(t.Items) == room || !can(i, lane) || !turn.hasRoom(i) {
					continue
				}
				if turn.admit(i) {
					t.Items = append(t.Items, m.claim(i, n, now))
				} else if !want.Alone { // the next one is tried
					turn.lacks[i.Class] = turn.lack(i)
				}
			}
		}
		if len(t.Items) < room {
			t.Waits = turn.waits(func(i *memItem) bool {
				return slices.ContainsFunc(node.Lanes, func(l core.Lane) bool { return can(i, l) })
			})
		}
		return t, nil
	})
}

func (q *memQueue) endClaim(i *memItem, e End, now time.Time) (promoted *memItem) {
	if e.Kind != EndDone {
		i.record(e.Steps, e.Version, now)
	} else if attempts := i.Attempts; i.Flow > 0 {
		i.record(e.Steps, e.Version, now)
		i.Attempts = attempts
	}
	undone, attempt := i.Flow == 2, i.Attempts
	state, kind, text := e.Apply(&i.Item, &i.flow.Journal)
	switch {
	case i.Flow == 2 && !undone:
		i.RunAt = now
	case state == Ready && e.Kind == EndParked:
		i.State = Ready
		i.begin(e.Version)
		q.park(i, e.Park, attempt, now)
	case state&Waiting != 0 && e.Kind != EndGivenBack:
		i.RunAt = now.Add(e.After)
	}
	if state&failed != 0 && i.Failing.IsZero() {
		i.Failing = now
	}
	q.book(i, now)
	if promoted = q.leave(i, state, now); state == Done {
		i.result = slices.Clone(e.Result)
	}
	if state&Waiting != 0 && i.Key != "" {
		q.space(i, now)
	}
	if kind == EndSnoozed {
		i.Note = text
	}
	if kind != 0 {
		i.attempted(i.Token, kind, text, now)
	}
	return promoted
}

func (m *memory) Cancel(ctx context.Context, queue string, ids []ItemID, from State, reason string) ([]State, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) ([]State, error) {
		states := make([]State, len(ids))
		places := make([]int, len(ids)) // in the order of ids
		for n := range places {
			places[n] = n
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
		for _, n := range places {
			i := q.find(ids[n])
			switch {
			case i == nil || i.State&from == 0:
			case i.Flow == 2 && i.State&(Waiting|Running) != 0: // it is being undone
				i.flow.Undo, i.flow.Reason, states[n] = Cancelled, reason, i.State
			case i.State == Running:
				i.Cancel, states[n] = cmp.Or(i.Cancel, reason), Running
			case i.State&(Waiting|Halted|Dead) != 0 && i.flow.undoes():
				i.Flow, i.flow.Undo, i.flow.Reason, i.flow.Wait = 2, Cancelled, reason, nil
				q.again(i, now)
				states[n] = i.State
			case i.State&(Waiting|Halted|Dead) != 0:
				i.Err, i.flow.Wait, states[n] = reason, nil, Cancelled
				q.leave(i, Cancelled, now)
			}
		}
		return states, nil
	})
}

func (m *memory) Again(ctx context.Context, queue string, ids []ItemID, from State) ([]ItemID, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (changed []ItemID, _ error) {
		for _, id := range slices.Sorted(slices.Values(ids)) {
			if i := q.find(id); i != nil && i.State&from&(Dead|Halted|Cancelled) != 0 {
				if i.Flow == 2 && !i.flow.undoes() { // it is undone
					i.Class, i.Flow, i.flow = i.journal(now).Class, 0, memFlow{}
				}
				q.again(i, now)
				changed = append(changed, id)
			}
		}
		return changed, nil
	})
}

func (m *memory) Pause(ctx context.Context, queue string, p Pause, paused bool) error {
	return ignore(call(ctx, m, queue, func(q *memQueue, now time.Time) (bool, error) {
		of := Pause{Class: p.Class, Key: p.Key}
		old, known := q.pauses[of]
		if paused && !known && of != (Pause{}) && len(q.paused(now, func(p Pause) bool { return p.Class+p.Key != "" })) >= MaxPauses {
			return false, ErrPauses
		}
		if p.Since = now; p.For > 0 {
			p.Until = now.Add(p.For)
		}
		if paused && p.Auto && known && (old.Until.IsZero() || p.For > 0 && old.Until.After(p.Until)) {
			return false, nil
		}
		delete(q.pauses, of)
		if p.For = 0; paused {
			q.pauses[of] = p
		}
		return paused, nil
	}))
}

// isHeld reports whether the queue or the key is paused.
func (q *memQueue) isHeld(key string, now time.Time) bool {
	return q.isPaused("", "", now) || key != "" && q.isPaused("", key, now)
}

func (q *memQueue) isPaused(class, key string, now time.Time) bool {
	p, ok := q.pauses[Pause{Class: class, Key: key}]
	return ok && (p.Until.IsZero() || p.Until.After(now))
}

// paused returns pauses that are not over.
func (q *memQueue) paused(now time.Time, ok func(Pause) bool) (all []Pause) {
	for of, p := range q.pauses {
		if q.isPaused(of.Class, of.Key, now) && ok(p) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, Pause.compare)
	return all
}

// endTrial forgets the pause of a key that is over, because an item of the key is done.
func (q *memQueue) endTrial(key string, now time.Time) {
	if key != "" && !q.isPaused("", key, now) {
		delete(q.pauses, Pause{Key: key})
	}
}

func (m *memory) Stats(ctx context.Context, queue string) (Stats, error) {
	return call(ctx, m, queue, func(q *memQueue, now time.Time) (Stats, error) {
		s := Stats{Items: len(q.items), Paused: q.isPaused("", "", now), Pauses: q.paused(now, func(Pause) bool { return true }), Nodes: len(q.serving(now)), Strays: q.strays(now), Classes: q.classStats(now)}
		counters := map[State]*int{Blocked: &s.Blocked, Ready: &s.Ready, Running: &s.Running, Retry: &s.Retry, Halted: &s.Halted, Done: &s.Done, Dead: &s.Dead, Cancelled: &s.Cancelled}
		for _, i := range q.items {
			due := i.State == Blocked || i.State&Waiting != 0 && !i.RunAt.After(now)
			if due {
				s.Oldest = max(s.Oldest, now.Sub(i.Enqueued))
			}
			if i.State == Ready && !due {
				s.Delayed++
			} else {
				*counters[i.State]++
			}
		}
		return s, nil
	})
}

func (q *memQueue) serving(now time.Time) (nodes []Serving) {
	for _, id := range slices.Sorted(maps.Keys(q.nodes)) {
		if n := q.alive(id, now); n != nil {
			nodes = append(nodes, Serving{n.Node, n.note, len(q.in(Running, n.has))})
		}
	}
	return nodes
}

func (m *memory) Explain(ctx context.Context, queue string, id ItemID) (x Explanation, ok bool, err error) {
	x, err = call(ctx, m, queue, func(q *memQueue, now time.Time) (Explanation, error) {
		i := q.find(id)
		if ok = i != nil; !ok {
			return x, nil
		}
		x = Explanation{Attempts: slices.Clone(i.attempts), Item: i.view(), Time: now, Nodes: q.serving(now), Running: len(q.in(Running, every))}
		if next := q.nextOf(i.Key, now); next.After(now) {
			x.KeyNext = next
		}
		x.LaneRunning = len(q.in(Running, func(other *memItem) bool { return other.Lane == i.Lane }))
		class, price := i.Class, i.Cost
		switch i.State {
		case Blocked:
			head := q.head(i.Key).view()
			x.Head, class, price = &head, head.Class, head.Cost
			x.Ahead = 1 + len(q.in(Blocked, func(other *memItem) bool { return other.Key == i.Key && byRank(other, i) < 0 }))
		case Ready, Retry:
			x.Before = len(q.in(Ready|Retry, func(other *memItem) bool {
				return other.Lane == i.Lane && other.Class == i.Class && !other.RunAt.After(now) && byRunAt(other, i) < 0
			}))
		}
		x.Pauses = q.paused(now, func(p Pause) bool { return p.concerns(class, i.Key) })
		if class != "" {
			s := q.statsOf(class, price, now)
			s.Pending, x.Class = 0, &s
		}
		return x, nil
	})
	return x, ok, err
}

func (m *memory) Prune(ctx context.Context, queue string, keep Keep, most int) (n int, more bool, err error) {
	n, err = call(ctx, m, queue, func(q *memQueue, now time.Time) (pruned int, _ error) {
		limits := map[State]time.Duration{Done: keep.Done, Dead: keep.Dead, Cancelled: keep.Cancelled}
		q.items = slices.DeleteFunc(q.items, func(i *memItem) bool {
			limit, ended := limits[i.State]
			gone := ended && limit >= 0 && now.Sub(i.Ended) >= limit && pruned < most
			if gone {
				pruned++
			}
			return gone
		})
		q.pruneSignals(keep.Signals, now)
		maps.DeleteFunc(q.pauses, func(_ Pause, p Pause) bool { return !p.Until.IsZero() && !p.Until.Add(KeptPause).After(now) })
		maps.DeleteFunc(q.full, func(_ string, full time.Time) bool { return !full.Add(q.every).After(now) }) // an item that runs takes one more
		maps.DeleteFunc(q.unique, func(_ string, u memUnique) bool { return !u.until.After(now) })
		return pruned, nil
	})
	return n, n == most, err
}
