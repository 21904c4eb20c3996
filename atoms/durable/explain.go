package durable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

var stateNames = []string{"blocked", "ready", "running", "retry", "halted", "done", "dead", "cancelled"}

// String is the state in lower case; or-ed states are joined by "|".
func (s State) String() string {
	var names []string
	for n, name := range stateNames {
		if s&(1<<n) != 0 {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, "|"), "none")
}

// MarshalText is String, for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// MarshalJSON is the facts, with the text of String as "why".
func (x Explanation) MarshalJSON() ([]byte, error) {
	type lane struct {
		Name  string `json:"name"`
		Limit int    `json:"limit,omitempty"`
	}
	type node struct {
		ID             NodeID `json:"id"`
		Name           string `json:"name"`
		Lease          string `json:"lease"`
		MaxConcurrency int    `json:"maxConcurrency"`
		MaxCluster     int    `json:"maxCluster,omitempty"`
		Lanes          []lane `json:"lanes"`
		Note           string `json:"note,omitempty"`
		Running        int    `json:"running"`
	}
	var nodes []node
	for _, s := range x.Nodes {
		n := node{s.Node.ID, s.Node.Name, s.Node.Lease.String(), s.Node.MaxConcurrency, s.Node.MaxCluster, nil, s.Note, s.Running}
		for _, l := range s.Node.Lanes {
			n.Lanes = append(n.Lanes, lane{l.Name, l.Limit})
		}
		nodes = append(nodes, n)
	}
	type facts Explanation
	return json.Marshal(struct {
		Why string `json:"why"`
		facts
		Nodes []node `json:"nodes,omitempty"`
	}{x.String(), facts(x), nodes})
}

// LogValue groups the item, its state and the reasons in words.
func (x Explanation) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("item", int64(x.Item.ID)), slog.String("state", x.Item.State.String()), slog.String("why", x.String()))
}

// String says in one line why the item waits, where it runs, or how it ended.
func (x Explanation) String() string {
	text := x.why()
	if x.Flow == nil || x.Flow.Undo != 0 && x.Item.State&Finished != 0 {
		return text
	}
	return text + "; " + x.Flow.steps()
}

func (x Explanation) why() string {
	i := x.Item
	if x.Flow != nil && x.Flow.Wait != nil {
		return x.Flow.Wait.waits()
	}
	if i.State == Blocked && x.Head != nil {
		return fmt.Sprintf("behind %s of key %s; the first %s", count(x.Ahead), i.Key, x.about(*x.Head))
	}
	if i.State&(Ready|Retry) != 0 && !i.RunAt.After(x.Time) {
		return strings.Join(x.reasons(), "; ")
	}
	return x.about(i)
}

func count(items int) string {
	if items == 1 {
		return "1 item"
	}
	return fmt.Sprint(items, " items")
}

// moment and round are how texts have points in time and spans of it.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

func (x Explanation) attempt(i Item) string {
	if x.MaxAttempts <= 0 {
		return fmt.Sprintf("attempt %d", i.Attempts)
	}
	return fmt.Sprintf("attempt %d of %d", i.Attempts, x.MaxAttempts)
}

// about says where an item runs or how it ended.
func (x Explanation) about(i Item) string {
	if x.headWaits != nil && i.ID != x.Item.ID {
		return x.headWaits.waits()
	}
	ended := fmt.Sprint(round(x.Time.Sub(i.Ended)), " ago")
	wait, rate := round(i.RunAt.Sub(x.Time)), ""
	if x.KeyNext.After(x.Time) && !x.KeyNext.Before(i.RunAt) { // its key delays it
		rate = fmt.Sprintf("key %s has its next token of KeyRate in %v", i.Key, wait)
	}
	also := func(text string) string { return strings.TrimSuffix(text+"; "+rate, "; ") }
	switch {
	case i.State == Running:
		does := "runs on"
		if x.Pending && i.ID == x.Item.ID {
			does = "is claimed, not started, on"
		}
		text := fmt.Sprintf("%s %s for %v, %s, lease ends in %v", does, i.Node, round(x.Time.Sub(i.Started)), x.attempt(i), round(i.Expires.Sub(x.Time)))
		if i.Cancel != "" {
			text += ", is to be cancelled: " + i.Cancel
		}
		if late := i.Started.Add(i.Shadow).Sub(x.Time); late > 0 && x.Class != nil && x.Class.Shadow.Started > 0 {
			text += fmt.Sprintf("; with the shadow of class %q it would still wait for %v", i.Class, late.Round(100*time.Millisecond))
		}
		return text
	case i.State == Retry && wait > 0:
		return also(fmt.Sprintf("waits for %v after %s: %s", wait, x.attempt(i), i.Err))
	case i.State == Ready && wait > 0 && i.Note != "":
		return also(fmt.Sprintf("is snoozed for %v: %s", wait, i.Note))
	case i.State == Ready && wait > 0:
		return cmp.Or(rate, fmt.Sprintf("is delayed for %v", wait))
	case i.State == Halted:
		return fmt.Sprintf("has been dead for %v and keeps its key until Again or Cancel: %s", round(x.Time.Sub(i.Ended)), i.Err)
	case i.State == Dead, i.State == Cancelled:
		return fmt.Sprintf("%v %s: %s", i.State, ended, i.Err)
	case i.State == Done:
		return "done " + ended
	}
	why := x.Class.waits(x.Time)
	for _, p := range x.Pauses {
		why = append(why, p.String())
	}
	if len(why) > 0 {
		return "waits: " + strings.Join(why, "; ")
	}
	return "can be claimed"
}

// reasons says why an item that is due is not claimed.
func (x Explanation) reasons() (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	for _, p := range x.Pauses {
		add("%s", p)
	}
	if len(x.Nodes) == 0 {
		add("no node serves the queue")
	}
	if x.Item.Losses >= LossesAlone {
		add("was lost with its process %d times, so it waits until a process runs nothing else", x.Item.Losses)
	}
	place := func(s Serving) int {
		return slices.IndexFunc(s.Node.Lanes, func(l core.Lane) bool { return l.Name == x.Item.Lane })
	}
	stray := !slices.ContainsFunc(x.Nodes, func(s Serving) bool { return place(s) >= 0 })
	if stray && len(x.Nodes) > 0 {
		add("no node has lane %q, so it is the lowest", x.Item.Lane)
	}
	cluster, lane, serves, idle := 0, 0, false, false // the highest limits
	for _, s := range x.Nodes {
		n := place(s)
		if n < 0 && !stray {
			continue
		}
		serves = true
		cluster = max(cluster, cmp.Or(s.Node.MaxCluster, math.MaxInt)) // 0: no limit
		if stray {
			lane = math.MaxInt
		} else {
			lane = max(lane, cmp.Or(s.Node.Lanes[n].Limit, math.MaxInt))
		}
		switch {
		case s.Note != "":
			add("%s %s", s.Node.Name, s.Note)
		case s.Running >= s.Node.MaxConcurrency && s.Node.MaxConcurrency > 0:
			add("%s runs %d of %d", s.Node.Name, s.Running, s.Node.MaxConcurrency)
		default:
			idle = true
		}
	}
	if serves && x.Running >= cluster {
		add("%d of %d items of the queue run", x.Running, cluster)
	}
	if serves && x.LaneRunning >= lane {
		add("%d of %d items of lane %s run", x.LaneRunning, lane, x.Item.Lane)
	}
	why = append(why, x.Class.waits(x.Time)...)
	switch {
	case x.Before > 0 && x.Item.Class != "":
		add("behind %s of its lane and class", count(x.Before))
	case x.Before > 0:
		add("behind %s of its lane", count(x.Before))
	}
	if len(why) == 0 && idle {
		add("is about to be claimed")
	}
	return why
}
