package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestStatusString(t *testing.T) {
	for status, want := range map[core.Status]string{
		core.StatusPending | core.StatusFailed: "pending|failed",
		core.StatusFinished:                    "succeeded|failed|cancelled|refused|dropped",
		core.StatusAlive:                       "pending|running|suspended",
		0:                                      "Status(0)",
	} {
		checkEqual(t, "text", status.String(), want)
	}
}

// begin is when time begins in a bubble.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Snapshots and lists of signals do not change when their operation does. They are copies of the reader.
func TestSnapshotDoesNotChange(t *testing.T) {
	inBody(t, core.Options{}, func(_ context.Context, op *core.Operation, c *core.Coordinator[coretest.Body]) {
		op.Raise("a")
		facts, s := op.Signals(), lookup(t, c, op.ID())
		op.RetractMatching("*")
		op.Raise("b")
		op.SetKey("later")
		checkSlice(t, "signals, as they were", names(facts), []string{"a"})
		checkEqual(t, "the snapshot, as it was", words(s.Has("a"), s.Has("b"), s.Has(""), s.Key), "true false false ")
		op.Signals()[0].Name = "changed"
		lookup(t, c, op.ID()).Signals[0].Name = "changed"
		checkEqual(t, "signal", op.Signals()[0].Name, "b")
		checkEqual(t, "signal in a snapshot", lookup(t, c, op.ID()).Signals[0].Name, "b")
	})
}

func failedSnapshot(t *testing.T) core.Snapshot {
	c := bodies(t, core.Options{Name: "orders"})
	parent := bodies(t, core.Options{})
	var id core.OperationID
	parent.Do(t.Context(), func(ctx context.Context) (err error) {
		id, err = c.Enqueue(ctx, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.SetKey("order-42")
			op.Raise("payment.declined")
			op.Set("amount", 12.5)
			op.Set("channel", make(chan int)) // a channel a channel has no JSON form
			time.Sleep(time.Second)
			return errors.New("card expired")
		})
		return err
	})
	time.Sleep(time.Minute)
	c.Pin(id)
	s, ok := c.Lookup(id)
	if !ok {
		t.Fatal("the operation was not found")
	}
	return s
}

func TestSnapshotJSON(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := failedSnapshot(t)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		checkError(t, "Unmarshal", json.Unmarshal(text, &got), nil)
		at := func(d time.Duration) string { return begin.Add(d).Local().Format(time.RFC3339Nano) }
		for field, want := range map[string]any{
			"id": float64(s.ID), "parent": float64(s.Parent), "key": "order-42", "status": "failed", "error": "card expired",
			"enqueued": at(0), "started": at(0), "finished": at(time.Second), "pins": 1.0,
		} {
			checkEqual(t, field, got[field], want)
		}
		coretest.Check(t, s.Parent != 0, "the parent is missing")
		values, _ := got["values"].(map[string]any)
		if channel, _ := values["channel"].(string); values["amount"] != 12.5 || !strings.HasPrefix(channel, "0x") {
			t.Errorf("values: got %v, want the amount, and the channel as fmt prints it", values)
		}
		signals, _ := got["signals"].([]any)
		coretest.Check(t, len(signals) == 1 && signals[0].(map[string]any)["name"] == "payment.declined", "signals: got %v, want payment.declined", signals)

		// Empty fields are left out.
		text, _ = json.Marshal(core.Snapshot{ID: 7, Status: core.StatusPending})
		if want := `{"id":7,"status":"pending","enqueued":"0001-01-01T00:00:00Z"}`; string(text) != want {
			t.Errorf("got %s, want %s", text, want)
		}
	})
}

func logged(v any) string {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key != "x" || a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Info("", "x", v)
	return strings.TrimSpace(out.String())
}

func TestSnapshotLogValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := failedSnapshot(t)
		got := logged(s)
		want := "x.id=" + s.ID.String() + " x.status=failed x.parent=" + s.Parent.String() +
			` x.key=order-42 x.duration=1s x.error="card expired" x.signals=[payment.declined]`
		checkEqual(t, "log", got, want)
		checkEqual(t, "of a bare one", logged(core.Snapshot{ID: 7, Status: core.StatusPending}), "x.id=7 x.status=pending")
	})
}

func TestStatsJSONAndLogValue(t *testing.T) {
	s := core.Stats{Enqueued: 9, Pending: 1, Running: 2, Succeeded: 3, Failed: 1, Cancelled: 1, Refused: 1, Rejected: 4, Limit: 8, Paused: true}
	var back core.Stats
	if err := json.Unmarshal([]byte(s.String()), &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("got %v with error %v, want what String wrote: %v", back, err, s)
	}
	want := "x.enqueued=9 x.succeeded=3 x.failed=1 x.cancelled=1 x.refused=1 x.dropped=0 x.pending=1 x.running=2 x.suspended=0 " +
		"x.rejected=4 x.overflow=0 x.limit=8 x.stuck=0 x.tracked=0 x.pinned=0 x.forced=0 x.signalsDropped=0 x.panics=0 x.paused=true x.closed=false"
	checkEqual(t, "LogValue", logged(s), want)
}

func TestStatusIsTextInJSON(t *testing.T) {
	for s := core.StatusPending; s <= core.StatusFinished; s++ {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back core.Status
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Errorf("%s reads as %v, %v", text, back, err)
		}
	}
	var s core.Status
	err := json.Unmarshal([]byte(`"runing"`), &s)
	checkSays(t, "Unmarshal", err, `"runing"`, "running")
}
