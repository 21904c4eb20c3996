package durable_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Explain names all there is to wait for.
func TestExplanations(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	running := durable.Item{State: durable.Running, Node: "shop-2", Attempts: 2, Started: ago(3 * time.Second), Expires: now.Add(11 * time.Second)}
	blocked := durable.Item{State: durable.Blocked, Key: "ada"}
	ready := durable.Item{State: durable.Ready, RunAt: now, Lane: "hot"}
	node := func(name, note string, run, limit int, lane string) durable.Serving {
		return durable.Serving{Node: durable.Node{Name: name, MaxConcurrency: 4, MaxCluster: limit, Lanes: []core.Lane{{Name: lane, Limit: limit}}}, Note: note, Running: run}
	}
	day := time.Date(2026, 1, 2, 4, 4, 5, 6000, time.FixedZone("", 3600)) // texts are in UTC
	later := func(state durable.State, note string) durable.Item {
		return durable.Item{State: state, Key: "ada", RunAt: now.Add(3 * time.Second), Note: note}
	}
	head := func(i durable.Item) *durable.Item { return &i }
	for want, x := range map[string]durable.Explanation{
		"behind 2 items of key ada; the first runs on shop-2 for 3s, attempt 2 of 8, lease ends in 11s": {Item: blocked, Head: &running, Ahead: 2},
		"behind 1 item of key ada; the first waits for 5s after attempt 1 of 8: no": {Item: blocked, Ahead: 1,
			Head: head(durable.Item{State: durable.Retry, RunAt: now.Add(5 * time.Second), Attempts: 1, Err: "no"})},
		"behind 1 item of key ada; the first has been dead for 1m0s and keeps its key until Again or Cancel: no": {Item: blocked, Ahead: 1,
			Head: head(durable.Item{State: durable.Halted, Ended: ago(time.Minute), Err: "no"})},
		"runs on shop-2 for 3s, attempt 2 of 8, lease ends in 11s":          {Item: running},
		"no node serves the queue":                                          {Item: ready},
		"the queue is paused until it is resumed; no node serves the queue": {Item: ready, Pauses: []durable.Pause{{}}},
		`no node has lane "hot", so it is the lowest`:                       {Item: ready, Nodes: []durable.Serving{node("a", "", 0, 0, "slow")}},
		"no node serves the queue; behind 1 item of its lane":               {Item: ready, Before: 1},
		"a runs 4 of 4; b waits; behind 7 items of its lane":                {Item: ready, Before: 7, Nodes: []durable.Serving{node("a", "", 4, 0, "hot"), node("b", "waits", 0, 0, "hot")}},
		"6 of 6 items of the queue run; 6 of 6 items of lane hot run": {Item: ready, Running: 6, LaneRunning: 6,
			Nodes: []durable.Serving{node("a", "", 3, 5, "hot"), node("b", "", 3, 6, "hot")}},
		"is about to be claimed": {Item: ready, Running: 60, LaneRunning: 60, Nodes: []durable.Serving{node("a", "", 3, 5, "hot"), node("b", "", 3, 0, "hot")}},
		"was lost with its process 3 times, so it waits until a process runs nothing else": {Item: durable.Item{State: durable.Ready, RunAt: now, Losses: 3},
			Nodes: []durable.Serving{node("a", "", 1, 0, "")}},
		"no node serves the queue; class gpt has its next token of Rate in 2s":     {Item: ready, Class: &durable.ClassStats{Name: "gpt", Next: now.Add(2 * time.Second), NextCost: now.Add(time.Second)}},
		"no node serves the queue; class gpt has its next token of CostRate in 2s": {Item: ready, Class: &durable.ClassStats{Name: "gpt", Next: now.Add(2 * time.Second), NextCost: now.Add(2 * time.Second)}},
		"key ada has its next token of KeyRate in 3s":                              {Item: later(durable.Ready, ""), KeyNext: now.Add(3 * time.Second)},
		"is delayed for 3s":       {Item: later(durable.Ready, ""), KeyNext: now.Add(time.Second)},
		"is snoozed for 3s: busy": {Item: later(durable.Ready, "busy")},
		"waits for 3s after attempt 0 of 8: ; key ada has its next token of KeyRate in 3s": {Item: later(durable.Retry, ""), KeyNext: now.Add(3 * time.Second)},
		"behind 1 item of key ada; the first key ada has its next token of KeyRate in 3s":  {Item: blocked, Ahead: 1, Head: head(later(durable.Ready, "")), KeyNext: now.Add(3 * time.Second)},
		"waits for a or b since 2026-01-02T03:04:05Z until 2026-01-02T04:04:05Z; done: x":  {Item: ready, Flow: &durable.Journal{Wait: &durable.Parked{Pattern: "a, b", Since: day, Until: day.Add(time.Hour)}, Steps: []durable.Step{{Name: "x", State: durable.StepDone}}}},
		"sleeps since 2026-01-02T03:04:05Z until 2026-01-02T04:04:05Z; done: nothing":      {Item: ready, Flow: &durable.Journal{Wait: &durable.Parked{Since: day, Until: day.Add(time.Hour)}}},
		"key ada is paused by web-1 since 2026-01-02T03:04:05Z until 2026-01-02T04:04:05Z: down; no node serves the queue": {Item: ready,
			Pauses: []durable.Pause{{Key: "ada", By: "web-1", Since: day, Until: day.Add(time.Hour), Reason: "down"}}},
		"done 1h0m0s ago": {Item: durable.Item{State: durable.Done, Ended: ago(time.Hour)}},
	} {
		x.Time, x.MaxAttempts = now, 8
		assert.Equal(t, want, x.String())
	}
	x := durable.Explanation{Item: running, Time: now, MaxAttempts: -1, Nodes: []durable.Serving{node("a", "gate", 1, 5, "hot")}}
	assert.Contains(t, x.String(), "for 3s, attempt 2, lease")
	text, err := json.Marshal(x)
	require.NoError(t, err)
	assert.Contains(t, string(text), `{"why":"runs on shop-2 for 3s`)
	assert.Contains(t, string(text), `"state":"running"`)
	assert.Contains(t, string(text), `"nodes":[{"id":0,"name":"a","lease":"0s","maxConcurrency":4,"maxCluster":5,"lanes":[{"name":"hot","limit":5}],"note":"gate","running":1}]`)
	assert.NotRegexp(t, `"[A-Z]\w*":`, string(text))
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("", "x", x, "stats", durable.Stats{Ready: 3})
	assert.Contains(t, b.String(), "x.item=0 x.state=running x.why=")
	assert.Contains(t, b.String(), "stats.ready=3")
	assert.Contains(t, durable.Stats{Ready: 3}.String(), `"ready":3`)
	assert.Equal(t, "blocked|dead", (durable.Blocked | durable.Dead).String())
	assert.Equal(t, "none", durable.State(0).String())
}
