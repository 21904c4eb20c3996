package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// class is a row of the table.
type class struct {
	durable.Class // that counts now
	own           durable.Class
	isSet         bool
	since, seen   int64
	stored        int64      // since as it is in the file
	marks         [2]float64 // of Rate and CostRate
	used          [2]int64
	shadow        *durable.Shadow // nil: none

	// What this transaction knows: items that run, tokens that it takes, whether a gate or a pause holds it up, and the cost of the item
	// for which it waits.
	running     int
	taken       [2]int64
	shut, waits bool
	lacks       int64
}

const classColumns = "name, lim, rate, burst, cost_rate, cost_burst, since, seen, mark, cost_mark, used, cost_used, is_set, own_lim, own_rate, own_burst, own_cost_rate, own_cost_burst, shadow, own_shadow"

func (c *class) columns() list {
	return list{&c.Name, &c.Limit, &c.Rate.PerSecond, &c.Rate.Burst, &c.CostRate.PerSecond, &c.CostRate.Burst, &c.since, &c.seen, &c.marks[0], &c.marks[1], &c.used[0], &c.used[1], &c.isSet,
		&c.own.Limit, &c.own.Rate.PerSecond, &c.own.Rate.Burst, &c.own.CostRate.PerSecond, &c.own.CostRate.Burst, kept[durable.Shadow]{&c.shadow}, kept[core.Limits]{&c.own.Shadow}}
}

// kept is in a column as JSON; "" is nil.
type kept[V any] struct{ at **V }

func (k kept[V]) Scan(text any) error {
	if *k.at = nil; text == "" {
		return nil
	}
	return json.Unmarshal(fmt.Append(nil, text), k.at)
}

func (k kept[V]) text() string {
	if *k.at == nil {
		return ""
	}
	return encode(*k.at)
}

func (c *class) rates() [2]core.Rate { return [2]core.Rate{c.Rate, c.CostRate} }

// read goes on from the time of the last change, if the clock is before it.
func (c *class) read(now int64) *class {
	if c.stored = c.since; c.seen > now {
		c.since, c.seen = c.since-(c.seen-now), now
	}
	return c
}

// inClass is true for items of the class ?2 of the queue ?1.
const inClass = "queue = ?1 and lane >= char(1) || ?2 || char(1) and lane < char(1) || ?2 || char(2)"

// The two rates of a class.
const (
	calls = iota
	cost
)

// come is how many tokens of a rate have come.
func (c *class) come(of int, now int64) float64 {
	return c.rates()[of].PerSecond * float64(now-c.since) / 1e6
}

// tokens is how many there are, with those that this transaction takes; below 0: a debt, unless it is an error of rounding.
func (c *class) tokens(of int, now int64) float64 {
	left := c.come(of, now) - c.marks[of]
	if left > -1e-9 && left < 0 {
		return 0
	}
	return min(float64(c.rates()[of].Burst), left)
}

// take takes tokens, also if they are not there, or gives some back.
func (c *class) take(of int, n, now int64) {
	if rate := c.rates()[of]; rate.PerSecond > 0 && n != 0 {
		c.marks[of] = max(c.marks[of], c.come(of, now)-float64(rate.Burst)) + float64(n)
		c.used[of] += n
	}
}

// counts reports whether the class bounds claims.
func (c *class) counts() bool { return c.Limit > 0 || c.Rate.PerSecond > 0 || c.CostRate.PerSecond > 0 }

// room is how many items of the class can be claimed, if they cost nothing.
func (c *class) room(now int64) int {
	room := math.MaxInt
	if c.shut || c.waits {
		return 0
	}
	if c.Limit > 0 {
		room = c.Limit - c.running
	}
	if c.Rate.PerSecond > 0 {
		room = min(room, int(math.Floor(c.tokens(calls, now)))-int(c.taken[calls]))
	}
	return room
}

// affords reports whether the class has what an item costs.
func (c *class) affords(price, now int64) bool {
	return c.CostRate.PerSecond == 0 || price == 0 || c.tokens(cost, now)-float64(c.taken[cost]) >= float64(min(price, int64(c.CostRate.Burst)))
}

// until is the time until there are n tokens, or all.
func (c *class) until(of int, n, now int64) time.Duration {
	rate := c.rates()[of]
	if rate.PerSecond == 0 || n == 0 {
		return 0
	}
	us := math.Ceil((float64(min(n, int64(rate.Burst))) - c.tokens(of, now)) / rate.PerSecond * 1e6)
	return time.Duration(min(max(0, us), 9e15)) * time.Microsecond
}

// use makes values of a class count.
func (c *class) use(to durable.Class, now int64) {
	next := *c.read(now)
	next.Limit, next.Rate, next.CostRate, next.since, next.seen = to.Limit, to.Rate, to.CostRate, now, now
	for of, rate := range next.rates() {
		switch was := c.rates()[of]; {
		case rate.PerSecond == 0:
			next.used[of] = 0
		case was.PerSecond == 0:
			next.marks[of] = -float64(rate.Burst)
		default:
			next.marks[of] = -min(float64(rate.Burst), c.tokens(of, now))
		}
	}
	next.shadow = c.shadow.Use(to.Shadow, now)
	*c = next
}

// change changes a class, which is made if there is none.
func (t *moment) change(name string, with func(c *class)) {
	c := &class{Class: durable.Class{Name: name}}
	t.get(c.columns(), "select "+classColumns+" from durable_class where queue = ? and name = ?", t.queue, name)
	before := *c
	with(c)
	if t.freed = true; *c != before || c.own == (durable.Class{}) {
		t.do("insert or replace into durable_class (queue, "+classColumns+") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", t.queue, c.Name, c.Limit, c.Rate.PerSecond, c.Rate.Burst, c.CostRate.PerSecond, c.CostRate.Burst,
			c.since, c.seen, c.marks[0], c.marks[1], c.used[0], c.used[1], c.isSet, c.own.Limit, c.own.Rate.PerSecond, c.own.Rate.Burst, c.own.CostRate.PerSecond, c.own.CostRate.Burst, kept[durable.Shadow]{&c.shadow}.text(), kept[core.Limits]{&c.own.Shadow}.text())
	}
}

// Charge is as in [durable.Store].
func (s *Store) Charge(ctx context.Context, queue, name string, byCalls, byCost int64) error {
	return ignore(change(ctx, s, queue, func(t *moment) bool {
		t.bill(name, byCalls, byCost)
		return true
	}))
}

// bill takes tokens of a class, also if they are not there, or gives some back.
func (t *moment) bill(name string, byCalls, byCost int64) {
	c := &class{}
	if name != "" && byCalls|byCost != 0 && t.get(c.columns(), "select "+classColumns+" from durable_class where queue = ? and name = ?", t.queue, name) {
		c.read(t.now)
		c.take(calls, byCalls, t.now)
		c.take(cost, byCost, t.now)
		c.shadow.Charge(byCalls, byCost, t.now)
		t.freed = true
		t.saveMarks(c)
	}
}

func (t *moment) saveMarks(c *class) {
	t.do("update durable_class set since = ?, seen = ?, mark = ?, cost_mark = ?, used = ?, cost_used = ?, shadow = ? where queue = ? and name = ?",
		c.since, t.now, c.marks[0], c.marks[1], c.used[0], c.used[1], kept[durable.Shadow]{&c.shadow}.text(), t.queue, c.Name)
}

// declare stores what a node has.
func (t *moment) declare(own durable.Class) {
	t.change(own.Name, func(c *class) {
		if c.own = own; !c.isSet && (c.Limit != own.Limit || c.rates() != (&class{Class: own}).rates()) {
			c.use(own, t.now)
		}
		if !c.isSet {
			c.shadow = c.shadow.Use(own.Shadow, t.now)
		}
		c.own.Name = ""
	})
}

// SetClass is as in [durable.Store].
func (s *Store) SetClass(ctx context.Context, queue string, to durable.Class) error {
	return ignore(change(ctx, s, queue, func(t *moment) bool {
		t.change(to.Name, func(c *class) { c.isSet = true; c.use(to, t.now) })
		return true
	}))
}

// ResetClass is as in [durable.Store].
func (s *Store) ResetClass(ctx context.Context, queue, name string) error {
	return ignore(change(ctx, s, queue, func(t *moment) bool {
		t.change(name, func(c *class) { c.isSet = false; c.use(c.own, t.now) })
		return true
	}))
}

func ignore[V any](_ V, err error) error { return err }

// counted are the classes with a limit, a rate or a shadow, and those that are held up, read once in a transaction, after the ends.
func (t *moment) counted() map[string]*class {
	if t.classes == nil {
		t.classes = map[string]*class{}
		for _, c := range rows(t, (*class).columns, "select "+classColumns+" from durable_class where queue = ? and (lim > 0 or rate > 0 or cost_rate > 0 or shadow <> '')", t.queue) {
			t.classes[c.Name] = c.read(t.now)
		}
		of := func(name string) *class {
			if t.classes[name] == nil {
				t.classes[name] = &class{Class: durable.Class{Name: name}}
			}
			return t.classes[name]
		}
		for _, g := range t.gates {
			if c := of(g.Class); g.Limit == 0 {
				c.shut = true
			} else if c.Limit == 0 || g.Limit < c.Limit {
				c.Limit = g.Limit
			}
		}
		for _, p := range t.paused("class <> ''") {
			of(p.Class).shut = true
		}
		for _, c := range t.classes {
			if c.Limit > 0 && !c.shut {
				t.get(list{&c.running}, "select count(*) from durable_item where state = 4 and "+inClass, t.queue, c.Name)
			}
		}
	}
	return t.classes
}

// bounds reports whether a class that is not held up counts.
func (t *moment) bounds() bool {
	for _, c := range t.counted() {
		if !c.shut && c.counts() {
			return true
		}
	}
	return false
}

// room is how many items of a class can be claimed.
func (t *moment) room(class string) int {
	if class != "" && t.counted()[class] != nil {
		return t.counted()[class].room(t.now)
	}
	return math.MaxInt
}

// admit counts items that are claimed, whose class has room.
func (t *moment) admit(i *item) {
	if c := t.classes[i.Class]; c != nil {
		c.running++
		c.taken[calls]++
		c.taken[cost] += i.Cost
		i.Shadow = c.shadow.Claim(i.Cost, t.now)
	}
}

// affords reports whether the class of an item has what it costs.
func (t *moment) affords(i *item) bool {
	c := t.classes[i.Class]
	return c == nil || c.affords(i.Cost, t.now)
}

// charge stores what the transaction takes of the tokens.
func (t *moment) charge() {
	for _, c := range t.classes {
		if rates := c.rates(); (rates != ([2]core.Rate{}) || c.shadow != nil) && (c.taken != [2]int64{} || c.since != c.stored) { // or the clock was set back
			c.take(calls, c.taken[calls], t.now)
			c.take(cost, c.taken[cost], t.now)
			c.taken, c.stored = [2]int64{}, c.since
			t.saveMarks(c)
		}
	}
}

// places are the classes of which items wait, in their lanes, as in durable.Insert.Place.
func (t *moment) places() (all []*item) {
	found := rows(t, func(i *item) list { return list{&i.place} }, `
with recursive found (place) as (
	select (select min(lane) from durable_item where queue = ?1 and state in (2, 8) and lane >= char(1) and lane < char(2))
	union all
	select (select min(i.lane) from durable_item as i where i.queue = ?1 and i.state in (2, 8) and i.lane > found.place and i.lane < char(2)) from found where found.place is not null
)
select place from found where place is not null`, t.queue)
	for n := range found {
		found[n].SetPlace(found[n].place)
		all = append(all, &found[n])
	}
	return all
}

// waits are the classes without room of which an item in the lanes can be claimed otherwise.
func (t *moment) waits(places []*item, lanes []core.Lane, alone bool) (waits []durable.ClassWait) {
	held := ""
	if t.rule().pauses {
		held = fmt.Sprintf(unheld, t.now)
	}
	for _, name := range slices.Sorted(maps.Keys(t.classes)) {
		c := t.classes[name]
		if c.shut || c.room(t.now) > 0 || !slices.ContainsFunc(places, func(p *item) bool {
			return p.Class == name && slices.ContainsFunc(lanes, func(l core.Lane) bool { return l.Name == p.Lane }) &&
				t.get(list{new(int)}, "select 1 from durable_item as i where queue = ? and lane = ? and state in (2, 8) and run_at <= ? and (losses >= 2) = ?"+held+" limit 1", t.queue, p.place, t.now, alone)
		}) {
			continue
		}
		w := durable.ClassWait{Class: name}
		if c.Limit <= 0 || c.running < c.Limit {
			price := c.until(cost, c.lacks, t.now)
			w.Next, w.Half = max(price, c.until(calls, 1, t.now)), max(price, c.until(calls, max(1, int64(c.Rate.Burst/2)), t.now))
		}
		waits = append(waits, w)
	}
	return waits
}

// stats adds the counters of a class to what is known of it. Next is when an item with that cost has its tokens.
func (c *class) stats(price, now int64) durable.ClassStats {
	s := durable.ClassStats{Name: c.Name, Limit: c.Limit, Running: c.running, Set: c.isSet, Shadow: c.shadow.Stats()}
	c.read(now)
	for of, to := range []*core.RateStats{&s.Calls, &s.Cost} {
		if rate := c.rates()[of]; rate.PerSecond > 0 {
			*to = core.RateStats{PerSecond: rate.PerSecond, Burst: rate.Burst, Used: c.used[of], Debt: max(0, -c.tokens(of, now))}
		}
	}
	costs := c.until(cost, price, now)
	if wait := max(c.until(calls, 1, now), costs); wait > 0 {
		s.Next = at(now + wait.Microseconds())
	}
	if costs > 0 {
		s.NextCost = at(now + costs.Microseconds())
	}
	return s
}

func (t *moment) classStats() (all []durable.ClassStats) {
	known := map[string]*class{}
	for _, c := range rows(t, (*class).columns, "select "+classColumns+" from durable_class where queue = ? and (lim > 0 or rate > 0 or cost_rate > 0 or shadow <> '' or is_set)", t.queue) {
		known[c.Name] = &c
	}
	pending := map[string]int{}
	type count struct {
		item
		pending, running int
	}
	for _, n := range rows(t, func(n *count) list { return list{&n.place, &n.pending, &n.running} },
		`
select lane, count(*), 0 from durable_item where queue = ?1 and state in (2, 8) and lane >= char(1) and lane < char(2) group by lane
union all select lane, 0, count(*) from durable_item where queue = ?1 and state = 4 and lane >= char(1) and lane < char(2) group by lane`, t.queue) {
		n.SetPlace(n.place)
		if known[n.Class] == nil {
			known[n.Class] = &class{Class: durable.Class{Name: n.Class}}
		}
		known[n.Class].running += n.running
		pending[n.Class] += n.pending
	}
	for _, c := range known {
		s := c.stats(1, t.now)
		s.Pending = pending[c.Name]
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b durable.ClassStats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// classOf is the class of an item with that cost, for Explain.
func (t *moment) classOf(name string, price int64) *durable.ClassStats {
	if name == "" {
		return nil
	}
	c := class{Class: durable.Class{Name: name}}
	t.get(c.columns(), "select "+classColumns+" from durable_class where queue = ? and name = ?", t.queue, name)
	t.get(list{&c.running}, "select count(*) from durable_item where state = 4 and "+inClass, t.queue, name)
	s := c.stats(price, t.now)
	return &s
}
