package durable

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory returns a store in memory, for tests: nothing in it survives the process. It is the
// model that other stores are compared with, so it is simple: one mutex, and every call looks at all
// items of its queue. Its clock is package time, so it runs in a synctest bubble. Queues of
// several processes are imitated by several queues on one store. It owns no goroutine and
// needs no closing.
func Memory() Store { return &memory{queues: map[string]*memQueue{}} }

type memory struct {
	mu     sync.Mutex
	queues map[string]*memQueue
	id     ItemID
	token  int64
	node   NodeID
}

type memQueue struct {
	items  []*memItem // sorted by ID
	nodes  map[NodeID]*memNode
	unique map[string]memUnique
	paused bool
}

type memItem struct {
	Item
	on *memNode // while Running
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

// lock begins a call: it returns the queue and the time, with the mutex locked, unless ctx has
// ended.
func (m *memory) lock(ctx context.Context, queue string) (*memQueue, time.Time, error) {
	if ctx.Err() != nil {
		return nil, time.Time{}, context.Cause(ctx)
	}
	m.mu.Lock()
	q := m.queues[queue]
	if q == nil {
		q = &memQueue{nodes: map[NodeID]*memNode{}, unique: map[string]memUnique{}}
		m.queues[queue] = q
	}
	return q, time.Now().Truncate(time.Microsecond), nil
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

func (q *memQueue) count(states State, ok func(*memItem) bool) int { return len(q.in(states, ok)) }

func every(*memItem) bool { return true }

// head returns the head of a key, or nil.
func (q *memQueue) head(key string) *memItem {
	heads := q.in(Ready|Running|Retry|Halted, func(i *memItem) bool { return key != "" && i.Key == key })
	if len(heads) == 0 {
		return nil
	}
	return heads[0]
}

// enter makes an item wait that does not.
func (q *memQueue) enter(i *memItem) {
	if i.State = Blocked; q.head(i.Key) == nil {
		i.State = Ready
	}
}

// leave gives an item a state in which it does not run. If the item was the head of its key
// and is not any more, the key is promoted, and leave returns the new head.
func (q *memQueue) leave(i *memItem, state State, now time.Time) (promoted *memItem) {
	before := i.State
	i.State, i.on = state, nil
	if state&(Finished|Halted) != 0 {
		i.Ended = now
	}
	if i.Key == "" || before == Blocked || state&Finished == 0 {
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
	return promoted
}

func byRank(a, b *memItem) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID)) }
func byRunAt(a, b *memItem) int {
	return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.ID, b.ID))
}

// view is the item as the store shows it.
func (i *memItem) view() Item {
	item := i.Item
	item.Data = slices.Clone(i.Data)
	if i.on != nil {
		item.Expires = i.on.expires
	}
	return item
}

func (m *memory) Insert(ctx context.Context, queue string, items []Insert) ([]Inserted, error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	done := make([]Inserted, 0, len(items))
	for _, in := range items {
		if u, ok := q.unique[in.Unique]; ok && u.until.After(now) {
			done = append(done, Inserted{ID: u.id, Duplicate: true})
			continue
		}
		m.id++
		i := &memItem{Item: Item{ID: m.id, Key: in.Key, Lane: in.Lane, Rank: in.Rank, Unique: in.Unique, Enqueued: now, RunAt: now.Add(in.Delay), Data: slices.Clone(in.Data)}}
		if in.Unique != "" {
			q.unique[in.Unique] = memUnique{m.id, now.Add(in.UniqueFor)}
		}
		q.enter(i)
		q.items = append(q.items, i)
		done = append(done, Inserted{ID: m.id})
	}
	return done, nil
}

func (m *memory) Join(ctx context.Context, node Node) (NodeID, error) {
	q, now, err := m.lock(ctx, node.Queue)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	m.node++
	node.ID, node.Lanes = m.node, slices.Clone(node.Lanes)
	q.nodes[node.ID] = &memNode{Node: node, expires: now.Add(node.Lease)}
	return node.ID, nil
}

// end ends a node and returns how many claims it had.
func (q *memQueue) end(n *memNode, now time.Time) int {
	delete(q.nodes, n.ID)
	claims := q.in(Running, func(i *memItem) bool { return i.on == n })
	for _, i := range claims {
		i.Token = 0
		q.leave(i, Ready, now)
	}
	return len(claims)
}

func (m *memory) Beat(ctx context.Context, node Node, note string) (b Beaten, err error) {
	q, now, err := m.lock(ctx, node.Queue)
	if err != nil {
		return Beaten{}, err
	}
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(q.nodes)) {
		if n := q.nodes[id]; !n.expires.After(now) {
			b.Lost = append(b.Lost, Lost{n.Name, q.end(n, now)})
		}
	}
	n := q.nodes[node.ID]
	if n == nil {
		return b, ErrLeaseLost
	}
	n.expires, n.note, b.Paused = now.Add(node.Lease), note, q.paused
	for _, i := range q.in(Running, func(i *memItem) bool { return i.on == n }) {
		b.Claims = append(b.Claims, Held{i.ID, i.Token, i.Cancel})
	}
	return b, nil
}

func (m *memory) Leave(ctx context.Context, node Node) error {
	q, now, err := m.lock(ctx, node.Queue)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if n := q.nodes[node.ID]; n != nil {
		q.end(n, now)
	}
	return nil
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
	i.State, i.Token, i.Attempts, i.Started, i.Node, i.on = Running, m.token, i.Attempts+1, now, n.Name, n
	return i.view()
}

func (m *memory) Claim(ctx context.Context, node Node, want Want) (claimed []Item, err error) {
	q, now, err := m.lock(ctx, node.Queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	n := q.alive(node.ID, now)
	if n == nil {
		return nil, ErrLeaseLost
	}
	if q.paused {
		return nil, nil
	}
	// due returns what can be claimed of a lane now, the first one first.
	due := func(lane string, limit int) []*memItem {
		room := want.Max - len(claimed)
		if node.MaxCluster > 0 {
			room = min(room, node.MaxCluster-q.count(Running, every))
		}
		if limit > 0 {
			room = min(room, limit-q.count(Running, func(i *memItem) bool { return i.Lane == lane }))
		}
		items := q.in(Ready|Retry, func(i *memItem) bool { return i.Lane == lane && !i.RunAt.After(now) })
		slices.SortFunc(items, byRunAt)
		return items[:min(len(items), max(0, room))]
	}
	if want.Aged > 0 {
		var first []*memItem
		for _, lane := range node.Lanes {
			first = append(first, due(lane.Name, lane.Limit)...)
		}
		if len(first) > 0 {
			if i := slices.MinFunc(first, byRunAt); now.Sub(i.RunAt) >= want.Aged {
				claimed = append(claimed, m.claim(i, n, now))
			}
		}
	}
	for _, lane := range node.Lanes {
		for _, i := range due(lane.Name, lane.Limit) {
			claimed = append(claimed, m.claim(i, n, now))
		}
	}
	return claimed, nil
}

func (m *memory) End(ctx context.Context, node Node, ends []End) ([]Ended, error) {
	q, now, err := m.lock(ctx, node.Queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	done := make([]Ended, 0, len(ends))
	for _, e := range ends {
		i := q.find(e.ID)
		switch {
		case i == nil || i.Token != e.Token:
			done = append(done, Ended{Outcome: OutcomeFenced})
			continue
		case i.State != Running:
			done = append(done, Ended{Outcome: OutcomeAlready, State: i.State})
			continue
		}
		promoted := q.endClaim(i, e, now)
		ended := Ended{Outcome: OutcomeEnded, State: i.State}
		if n := q.alive(node.ID, now); e.HandOver && promoted != nil && n != nil && !q.paused && promoted.Lane == i.Lane && !promoted.RunAt.After(now) {
			next := m.claim(promoted, n, now)
			ended.Next = &next
		}
		done = append(done, ended)
	}
	return done, nil
}

func (q *memQueue) endClaim(i *memItem, e End, now time.Time) (promoted *memItem) {
	kind := e.Kind
	if i.Cancel != "" && (kind == EndRetry || kind == EndSnoozed || kind == EndGivenBack) {
		kind, e.Err = EndCancelled, i.Cancel
	}
	if kind != EndSnoozed && kind != EndGivenBack {
		i.Err = e.Err
	} else {
		i.Attempts--
	}
	if kind == EndRetry || kind == EndSnoozed {
		i.RunAt = now.Add(e.After)
	}
	state := map[EndKind]State{EndDone: Done, EndRetry: Retry, EndDead: Dead, EndHalted: Halted, EndSnoozed: Ready, EndGivenBack: Ready, EndCancelled: Cancelled}[kind]
	if state == Halted && i.Key == "" {
		state = Dead
	}
	return q.leave(i, state, now)
}

func (m *memory) Cancel(ctx context.Context, queue string, ids []ItemID, reason string) ([]State, error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	states := make([]State, len(ids))
	for n, id := range ids {
		i := q.find(id)
		switch {
		case i != nil && i.State == Running:
			i.Cancel, states[n] = cmp.Or(i.Cancel, reason), Running
		case i != nil && i.State&(Waiting|Halted) != 0:
			i.Err, states[n] = reason, Cancelled
			q.leave(i, Cancelled, now)
		}
	}
	return states, nil
}

func (m *memory) Again(ctx context.Context, queue string, ids []ItemID) (changed []ItemID, err error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		i := q.find(id)
		if i == nil || i.State&(Dead|Halted|Cancelled) == 0 {
			continue
		}
		i.State, i.Attempts, i.Token, i.RunAt, i.Cancel, i.Ended = 0, 0, 0, now, "", time.Time{}
		q.enter(i)
		changed = append(changed, id)
	}
	return changed, nil
}

func (m *memory) Pause(ctx context.Context, queue string, paused bool) error {
	q, _, err := m.lock(ctx, queue)
	if err == nil {
		q.paused = paused
		m.mu.Unlock()
	}
	return err
}

func (m *memory) Items(ctx context.Context, queue string, query Query) ([]Item, error) {
	q, _, err := m.lock(ctx, queue)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var items []Item
	for _, i := range q.in(cmp.Or(query.State, ^State(0)), func(i *memItem) bool {
		return i.ID > query.After && (query.Key == "" || i.Key == query.Key) && (query.Lane == "" || i.Lane == query.Lane)
	}) {
		if items = append(items, i.view()); len(items) == cmp.Or(query.Limit, 100) {
			break
		}
	}
	return items, nil
}

func (m *memory) Stats(ctx context.Context, queue string) (Stats, error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return Stats{}, err
	}
	defer m.mu.Unlock()
	s := Stats{Items: len(q.items), Paused: q.paused}
	counters := map[State]*int{Blocked: &s.Blocked, Ready: &s.Ready, Running: &s.Running, Retry: &s.Retry, Halted: &s.Halted, Done: &s.Done, Dead: &s.Dead, Cancelled: &s.Cancelled}
	for _, i := range q.items {
		due := i.State == Blocked || i.State&(Ready|Retry) != 0 && !i.RunAt.After(now)
		if due {
			s.Oldest = max(s.Oldest, now.Sub(i.Enqueued))
		}
		if i.State == Ready && !due {
			s.Delayed++
		} else {
			*counters[i.State]++
		}
	}
	for id := range q.nodes {
		if q.alive(id, now) != nil {
			s.Nodes++
		}
	}
	return s, nil
}

func (m *memory) Explain(ctx context.Context, queue string, id ItemID) (Explanation, bool, error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return Explanation{}, false, err
	}
	defer m.mu.Unlock()
	i := q.find(id)
	if i == nil {
		return Explanation{}, false, nil
	}
	x := Explanation{Item: i.view(), Time: now, Paused: q.paused, Running: q.count(Running, every)}
	x.LaneRunning = q.count(Running, func(other *memItem) bool { return other.Lane == i.Lane })
	switch i.State {
	case Blocked:
		head := q.head(i.Key).view()
		x.Head = &head
		x.Ahead = 1 + q.count(Blocked, func(other *memItem) bool { return other.Key == i.Key && byRank(other, i) < 0 })
	case Ready, Retry:
		x.Before = q.count(Ready|Retry, func(other *memItem) bool {
			return other.Lane == i.Lane && !other.RunAt.After(now) && byRunAt(other, i) < 0
		})
	}
	for _, id := range slices.Sorted(maps.Keys(q.nodes)) {
		if n := q.alive(id, now); n != nil {
			x.Nodes = append(x.Nodes, Serving{n.Node, n.note, q.count(Running, func(i *memItem) bool { return i.on == n })})
		}
	}
	return x, true, nil
}

func (m *memory) Prune(ctx context.Context, queue string, keep Keep, most int) (pruned int, err error) {
	q, now, err := m.lock(ctx, queue)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	limits := map[State]time.Duration{Done: keep.Done, Dead: keep.Dead, Cancelled: keep.Cancelled}
	q.items = slices.DeleteFunc(q.items, func(i *memItem) bool {
		limit, ended := limits[i.State]
		if !ended || limit < 0 || now.Sub(i.Ended) < limit || pruned == most {
			return false
		}
		pruned++
		return true
	})
	maps.DeleteFunc(q.unique, func(_ string, u memUnique) bool { return !u.until.After(now) })
	return pruned, nil
}
