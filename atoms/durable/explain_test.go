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
