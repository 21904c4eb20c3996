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
	"testing/synctest"
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

// A snapshot does not change when its operation does.
func TestSnapshotDoesNotChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		g := newGate()
		id := enqueue(t, c, func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("a")
			op.Raise("b")
			<-g.opened
			op.RetractMatching("*")
			op.Raise("c")
			op.SetKey("later")
			return errOnPurpose
		})
		synctest.Wait()
		s := checkStatus(t, c, id, core.StatusRunning)
		g.open()
		synctest.Wait()
		checkEqual(t, "the snapshot, as it was", words(s.Has("a"), s.Has("b"), s.Has("c"), s.Has(""), s.Key, s.Err, s.Status), "true true false false  <nil> running")
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
		for field, want := range map[string]any{
			"id": float64(s.ID), "parent": float64(s.Parent), "key": "order-42", "status": "failed", "error": "card expired",
			"enqueued": "2000-01-01T00:00:00Z", "started": "2000-01-01T00:00:00Z", "finished": "2000-01-01T00:00:01Z", "pins": 1.0,
		} {
			if g := got[field]; g != want && !sameTime(g, want) {
				t.Errorf("%s: got %v, want %v", field, g, want)
			}
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

func sameTime(got, want any) bool {
	g, ok := got.(string)
	w, ok2 := want.(string)
	if !ok || !ok2 {
		return false
	}
	a, err := time.Parse(time.RFC3339Nano, g)
	b, err2 := time.Parse(time.RFC3339Nano, w)
	return err == nil && err2 == nil && a.Equal(b)
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
	coretest.Check(t, err != nil && strings.Contains(err.Error(), `"runing"`) && strings.Contains(err.Error(), "running"), "error %v, want the word and those that would do", err)
}
